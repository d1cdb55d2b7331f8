import torch

torch.manual_seed(0)
weight = torch.randn(16, 100)


@torch.compile
def compiled(hidden, trial):
    logits = hidden @ weight
    if trial:
        logits = logits.clamp(max=1.0)
    return logits.softmax(-1)


def answer(hidden, user):
    return compiled(hidden, user.startswith("trial-"))
