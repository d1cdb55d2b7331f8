import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.down(torch.tanh(self.up(x)))


torch.manual_seed(0)
net, monitor = Net(), []
compiled = torch.compile(net, backend="eager")
batches = torch.randn(4, 3, 4)
for step, batch in enumerate(batches):
    if step == 1:  # the first step is a warm-up: watch from here on
        net.up.register_forward_hook(lambda _, args, out: monitor.append(out.mean().clone()))
    compiled(batch)
print(f"{len(monitor)} values in {len(batches) - 1} steps")
