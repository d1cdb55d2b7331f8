from torch import nn


def watchable(net):
    """Hooks each function when it is added: too late for what was captured."""

    class Watchers(list):
        def append(self, watch):
            super().append(watch)
            for module in net.modules():
                if isinstance(module, nn.Linear):
                    module.register_forward_hook(lambda layer, args, out: watch(out))

    return Watchers()
