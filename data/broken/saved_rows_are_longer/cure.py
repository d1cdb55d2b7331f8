import torch
from helpers.lessons.zero_stages import start_deepspeed, zero_config
from helpers.ranks import init_ranks
from torch import nn

init_ranks("cpu")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 8, bias=False), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.03, weight_decay=0.0)
x = torch.randn(64, 16)
if deepspeed := start_deepspeed():
    from deepspeed.utils import safe_get_full_fp32_param, safe_set_full_fp32_param

    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=zero_config(3, 64))
    for step in range(31):
        loss = (engine(x) - x[:, :1].abs()).square().mean()
        engine.backward(loss)
        engine.step()
        # The optimizer keeps an fp32 copy of its own, from which each step overwrites the weight.
        rows = safe_get_full_fp32_param(model[0].weight)  # a collective: all ranks enter
        rows = rows / rows.norm(dim=1, keepdim=True)
        safe_set_full_fp32_param(model[0].weight, rows)  # none: each rank writes its own piece
        with deepspeed.zero.GatheredParameters(model[0].weight, modifier_rank=0), torch.no_grad():
            model[0].weight.copy_(rows)
        if step % 15 == 0:
            print(f"step {step:2d}  loss {loss.item():.3f}")
    with deepspeed.zero.GatheredParameters(model[0].weight):
        lengths = model[0].weight.detach().norm(dim=1)
    print(f"rows of the saved weight: lengths {lengths.min():.2f} to {lengths.max():.2f}")
