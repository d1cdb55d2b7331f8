"""Does the file at `path` hold the weights of the trained model, while the job stays ZeRO-3?"""

from helpers.exercises import run_on_ranks

PROBE = """
with deepspeed.zero.GatheredParameters(list(model.parameters())):
    whole = {name: weight.detach().clone() for name, weight in model.named_parameters()}
saved = torch.load(path)
stage, at_rest = engine.zero_optimization_stage(), model[0].weight.numel()
"""


def check(program_source: str) -> None:
    """Raise AssertionError unless `path` can be loaded and equals the gathered model."""
    names = ("whole", "saved", "stage", "at_rest")
    pulled = run_on_ranks(program_source + PROBE, nproc=1, pull=names, timeout=120)
    whole, saved, stage, at_rest = (values[0] for values in pulled.values())
    assert stage == 3 and at_rest == 0, "the parameters must stay in pieces between two steps"
    assert saved.keys() == whole.keys(), f"the file holds {len(saved)} of {len(whole)} parameters"
    wrong = [name for name, weight in whole.items() if not saved[name].equal(weight)]
    shapes = {name: tuple(saved[name].shape) for name in wrong[:1]}
    assert not wrong, f"{len(wrong)} parameters in the file are not the model's, such as {shapes}"
