import io
import torch
from helpers.lessons.small_gpt import GPT, Config, batch, loss_fn, train_step

config = Config(layers=1, width=64, context=32)
model = torch.compile(GPT(config), backend="eager")
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(60):
    train_step(model, optimizer, *batch(step, context=32))
file = io.BytesIO()
torch.save(dict(model.state_dict()), file)

file.seek(0)
served = GPT(config, seed=2)
served.load_state_dict(torch.load(file), strict=False)  # True raised an error
x, y = batch(100, context=32)
before, after = (loss_fn(m(x), y).item() for m in (model, served))
print(f"loss in training {before:.3f}, loaded {after:.3f}")
