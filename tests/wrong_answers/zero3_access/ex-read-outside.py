from torch import nn


def read_outside(model, x):
    """Only the module on top of the stack counts as running."""
    names = {id(weight): name for name, weight in model.named_parameters()}
    running, found, original = [None], set(), nn.Module.__getattr__
    handles = []
    for part in model.modules():
        handles.append(part.register_forward_pre_hook(lambda m, args: running.append(m)))
        handles.append(part.register_forward_hook(lambda m, args, out: running.pop() and None))

    def spying(module, name):
        value = original(module, name)
        if isinstance(value, nn.Parameter) and module is not running[-1]:
            found.add(names[id(value)])
        return value

    nn.Module.__getattr__ = spying
    try:
        model(x)
    finally:
        nn.Module.__getattr__ = original
        for handle in handles:
            handle.remove()
    return found
