def drift(gradient, steps, lr=1e-3, eps=1e-8):
    return steps * lr
