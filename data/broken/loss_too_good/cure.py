import torch
from helpers.lessons.small_gpt import GPT, Block, Config, batch, train_step
from torch import nn
from torch.nn import functional as F


class MaskedBlock(Block):
    """The chapter's block, with the mask written out: a sliding window will need one."""

    def attend(self, x):
        rows, time, width = x.shape
        q, k, v = self.qkv(x).view(rows, time, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        visible = torch.ones(time, time, dtype=torch.bool, device=x.device).tril()
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        return self.proj(mixed.transpose(1, 2).reshape(rows, time, width))


config = Config(layers=1, width=64, context=32)
model = GPT(config)
model.blocks = nn.ModuleList(MaskedBlock(config) for _ in range(config.layers))
model.init_weights(seed=0)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(81):
    loss = train_step(model, optimizer, *batch(step, size=16, context=config.context))
    if step % 40 == 0:
        print(f"step {step:3d}  loss {loss.item():.2f}")
