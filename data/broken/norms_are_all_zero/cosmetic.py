from helpers.lessons.small_gpt import GPT, Config, batch, loss_fn
from helpers.lessons.zero_stages import adamw, start_deepspeed, zero_config
from helpers.ranks import init_ranks

rank, world_size, device = init_ranks()
norms, losses = {}, []
if deepspeed := start_deepspeed():
    model = GPT(Config(layers=1, width=32, heads=2, context=32)).to(device)
    optimizer = adamw(model.parameters())
    engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=zero_config(3, 4))
    for step in range(3):
        x, y = batch(step, rank, world_size, size=8, context=32, device=device)
        loss = loss_fn(engine(x), y)
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
    norms = {name: weight.detach().float().norm().item() for name, weight in engine.module.named_parameters()}
    if rank == 0:
        print("losses", [round(loss, 3) for loss in losses])
        for name in ("token.weight", "blocks.0.up.weight", "norm.weight"):
            print(f"{name:20} norm {norms[name]:.3f}")
