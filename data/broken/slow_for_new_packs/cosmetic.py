import torch

torch.manual_seed(0)
query, key, value = (torch.randn(64, 16) for _ in range(3))  # 64 tokens of several documents


@torch.compile(dynamic=True)  # lengths vary
def attend(query, key, value, ends):
    parts = [torch.tensor_split(tensor, ends) for tensor in (query, key, value)]
    return torch.cat([(q @ k.T / 4).softmax(-1) @ v for q, k, v in zip(*parts, strict=True)])


def step(lengths):
    """Each token attends to the tokens of its own document."""
    ends = [sum(lengths[: i + 1]) for i in range(len(lengths) - 1)]
    return attend(query, key, value, ends)
