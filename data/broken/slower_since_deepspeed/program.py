import torch
from helpers.lessons.small_gpt import GPT, Config, batch, loss_fn
from helpers.lessons.zero_stages import start_deepspeed
from helpers.ranks import init_ranks

CONFIG = {
    "train_micro_batch_size_per_gpu": 8,
    "zero_allow_untested_optimizer": True,
    "zero_optimization": {"stage": 1},
}


def train(deepspeed=None):
    """Losses of six steps, plain or with DeepSpeed."""
    model = engine = GPT(Config(layers=2, width=32, heads=2, context=32))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
    if deepspeed:
        engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG)
    losses = []
    for step in range(6):
        x, y = batch(step, size=8, context=32)
        loss = loss_fn(engine(x), y)
        if deepspeed:
            engine.backward(loss)
            engine.step()
        else:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item())
    return losses


init_ranks()
plain, moved = train(), []
if deepspeed := start_deepspeed():
    moved = train(deepspeed)
for step, (before, since) in enumerate(zip(plain, moved)):
    print(f"step {step}  loss {before:.4f}, with DeepSpeed {since:.4f}")
