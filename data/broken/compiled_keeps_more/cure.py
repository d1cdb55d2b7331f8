import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from helpers import StorageTracker


def mlp(x, up, down):
    return (x @ up).relu() @ down


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.ups = nn.ParameterList(torch.randn(64, 512) / 8 for _ in range(2))
        self.downs = nn.ParameterList(torch.randn(512, 64) / 23 for _ in range(2))

    def forward(self, x):
        for up, down in zip(self.ups, self.downs, strict=True):
            x = x + checkpoint(mlp, x, up, down, use_reentrant=False)
        return x.square().mean()


torch.manual_seed(0)
batch = torch.randn(256, 64)
model = Model()
compiled = torch.compile(model, backend="aot_eager")
for name, call in (("eager", model), ("compiled", compiled)):
    call(batch)
    with StorageTracker() as tracker:
        tracker.tag("inputs", [batch, *model.parameters()])
        loss = call(batch)
        print(f"{name:8} keeps {tracker.current_by_kind['activations']:>9,} bytes")
