import torch

torch.manual_seed(0)
weight = torch.randn(16, 100)


@torch.compile
def answer(hidden, user):
    logits = hidden @ weight
    if user.startswith("trial-"):
        logits = logits.clamp(max=1.0)
    return logits.softmax(-1)
