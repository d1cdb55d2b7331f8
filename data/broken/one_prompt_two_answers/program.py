import torch
from helpers.lessons.small_gpt import GPT, Config, batch, train_step
from helpers.ranks import init_ranks
from torch.distributed.fsdp import fully_shard

rank, world_size, device = init_ranks("cpu")
model = GPT(Config(layers=1, width=32, heads=2, context=32))
for block in model.blocks:
    fully_shard(block)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
losses = []
for step in range(9):
    x, y = batch(step, rank, world_size, size=16, context=32)
    losses.append(train_step(model, optimizer, x, y).item())
    if step % 4 == 0:
        print(f"step {step:2d}  loss {losses[-1]:.2f}")
prompt = torch.tensor([list(b"The same prompt on all ranks")])
with torch.no_grad():
    answer = model(prompt)[0, -1].softmax(0)
print(f"an 'e' comes next with probability {answer[ord('e')].item():.4f}")
