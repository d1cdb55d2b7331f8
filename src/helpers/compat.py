"""Where versions of PyTorch differ, and its private interfaces: the one door to them."""

from collections.abc import Callable
from importlib import import_module

from helpers.paths import BookError

# Private names that helpers and chapters use, and the module that holds each in the tested versions.
_PRIVATE = {
    "TorchDispatchMode": "torch.utils._python_dispatch",
    "is_traceable_wrapper_subclass": "torch.utils._python_dispatch",
    "is_traceable_wrapper_subclass_type": "torch.utils._python_dispatch",
    "lookup_backend": "torch._dynamo",
    "guard_failures": "torch._dynamo.utils",
    "_debug_get_cache_entry_list": "torch._dynamo.eval_frame",
    "register_bytecode_hook": "torch._dynamo.convert_frame",
}

# Functions of torch.distributed that have another name before 2.13, where the older one warns.
_RENAMED = {
    "all_gather_single": "all_gather_into_tensor",
    "reduce_scatter_single": "reduce_scatter_tensor",
}

_registered: set[str] = set()


def __getattr__(name: str):
    # On first use only: whoever needs another name of this module does not import Dynamo.
    if name in _RENAMED:
        distributed = import_module("torch.distributed")
        return getattr(distributed, name, None) or getattr(distributed, _RENAMED[name])
    if name not in _PRIVATE:
        raise AttributeError(f"module 'helpers.compat' has no attribute {name!r}")
    try:
        return getattr(import_module(_PRIVATE[name]), name)
    except (ImportError, AttributeError):
        raise BookError(
            f"This torch has no {_PRIVATE[name]}.{name}: the book runs on torch 2.11 to 2.13."
        ) from None


def in_backward() -> bool:
    """Does the autograd engine run here now? A recomputed forward pass (checkpoint) is inside it."""
    import torch

    return torch._C._current_graph_task_id() != -1


def register_backend(name: str) -> Callable[[Callable], Callable]:
    """Decorator: `torch.compile(..., backend=name)` uses this function from now on.

        @register_backend("count_ops")
        def count_ops(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]): ...

    torch's own decorator raises on a second registration; but an export cell runs in its notebook
    and again when its lesson is imported. Here the latest function wins. The names that torch
    itself has are refused with BookError. What was compiled before keeps its backend.

    Operators need no such helper: a second `torch.library.custom_op("book::f", ...)` replaces the
    first, and `register_fake`, `register_kernel` and `register_autograd` may be repeated. What the
    first returned must not be called again: mostly it calls the second, and once in many runs it
    is an operator without a schema (seen on 2.13.0).
    """

    def register(backend: Callable) -> Callable:
        from torch._dynamo.backends import registry

        if name not in _registered and name in registry.list_backends(exclude_tags=()):
            raise BookError(f"torch has a backend called {name!r} already. Choose another name.")
        registry._COMPILER_FNS.pop(name, None)
        _registered.add(name)
        return registry.register_backend(backend, name=name)

    return register
