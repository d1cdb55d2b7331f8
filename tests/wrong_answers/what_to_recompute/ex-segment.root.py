def best_segment(layers, inner):
    """The square root of the layers, whatever a layer keeps."""
    divisors = [k for k in range(1, layers + 1) if layers % k == 0]
    return min(divisors, key=lambda k: abs(k - layers**0.5))
