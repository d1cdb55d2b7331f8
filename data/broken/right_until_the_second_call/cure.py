import torch


def damp(now, before):
    """Halve `now` in place, and return by how much it exceeds `before`."""
    now.mul_(0.5)
    return now - before


@torch.compile(backend="aot_eager")
def compiled(signal):
    """damp of a signal and itself, two steps on: the compiler sees that they share memory."""
    return damp(signal[:6], signal[2:])


compiled(torch.ones(8))  # warm up: the first request must not wait
signal = torch.arange(8.0)
excess = compiled(signal)
print(excess.tolist())
print("eager:", damp((again := torch.arange(8.0))[:6], again[2:]).tolist())
