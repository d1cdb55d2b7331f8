"""Count what happened: graphs that Dynamo captured, collectives that a rank issued.

Counters inside PyTorch miss events; these are counted where the event passes.
"""

from collections import Counter
from copy import deepcopy

import torch
from torch import fx

from helpers.compat import TorchDispatchMode, is_traceable_wrapper_subclass_type
from helpers.paths import BookError


class GraphRecorder:
    """A torch.compile backend that records each graph, then hands it to `backend`.

        rec = GraphRecorder()
        f = torch.compile(f, backend=rec)

    graphs  the captured graphs, one fx.GraphModule for each compilation, as Dynamo made them
    calls   how often compiled code ran (a backward graph is not a call of its own)
    With DistributedDataParallel, Dynamo cuts a graph into buckets: each counts for itself.
    """

    def __init__(self, backend: str = "eager"):
        from helpers.compat import lookup_backend  # loads Dynamo, which counting does not need

        try:
            self._compile = lookup_backend(backend)
        except Exception as error:
            raise BookError(f"torch has no backend {backend!r}: {error}") from None
        self.graphs: list[fx.GraphModule] = []
        self.calls = 0

    def __call__(self, graph: fx.GraphModule, example_inputs: list) -> object:
        # A copy: Inductor's passes edit the graph that they are given.
        self.graphs.append(fx.GraphModule(graph, deepcopy(graph.graph)))
        compiled = self._compile(graph, example_inputs)

        def run(*args):
            self.calls += 1
            return compiled(*args)

        return run

    def __len__(self) -> int:
        return len(self.graphs)

    def ops(self, index: int) -> list[str]:
        """Names of the operations in graph `index`, in order, such as ["sin", "add"]."""
        nodes = self.graphs[index].graph.nodes
        return [_op_name(n.target) for n in nodes if n.op.startswith("call_")]

    def __repr__(self) -> str:
        return f"GraphRecorder: {len(self)} graphs captured, {self.calls} calls of compiled code"


class Measurement(TorchDispatchMode):
    """A mode that watches operations, and leaves compiled code compiled.

    Under a TorchDispatchMode torch.compile silently runs eager, unless the mode ignores compile
    internals: then compilation is not watched, and its result is. To be certain, pass the
    GraphRecorder of the compiled code and `runs`, how often that code must run inside: another
    number raises BookError at the end.
    """

    supports_higher_order_operators = True

    def __init__(self, recorder: GraphRecorder | None = None, runs: int | None = None):
        super().__init__()
        if (recorder is None) != (runs is None):
            raise BookError("Pass both: the recorder of the compiled code, and its runs inside.")
        self._recorder, self._runs = recorder, runs

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True

    def __enter__(self):
        self._calls_before = 0 if self._recorder is None else self._recorder.calls
        return super().__enter__()

    def __exit__(self, kind, error, trace) -> None:
        super().__exit__(kind, error, trace)
        if kind is None and self._recorder is not None:
            ran = self._recorder.calls - self._calls_before
            if ran != self._runs:
                raise BookError(
                    f"Compiled code ran {ran} times inside this measurement, not {self._runs}: "
                    "what was measured is not what you compiled."
                )

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        # A DTensor must become collectives and plain tensors first; those come here again.
        if any(is_traceable_wrapper_subclass_type(t) for t in types):
            return NotImplemented
        result = func(*args, **(kwargs or {}))
        self.see(func, (args, kwargs), result)
        return result

    def see(self, func, inputs, result) -> None:
        """Called after each operation."""
        raise NotImplementedError


def count_collectives(recorder: GraphRecorder | None = None, runs: int | None = None):
    """Context manager that counts the collectives this rank issues, eager or compiled.

        with count_collectives() as comms:
            loss.backward()
        comms.calls["all_reduce"], comms.bytes["all_reduce"]

    calls  collectives by kind: all_reduce, all_gather, reduce_scatter, broadcast, send ...
    bytes  by kind, of the largest buffer of each call on this rank: the gathered tensor of an
           all_gather, the input of a reduce_scatter. It is not what crosses the wire.
    ops    calls by operator: "c10d.allreduce_" (torch.distributed, DDP's C++ reducer, FSDP),
           "_c10d_functional.all_reduce" (functional collectives, DTensor, compiled graphs)

    A coalesced call counts once. Not seen: calls on a backend object below the process group,
    a library's own communication (DeepSpeed's C++, symmetric memory), what other threads
    issue, and traffic with the store. `recorder` and `runs`: see Measurement.
    """
    return _CollectiveCounter(recorder, runs)


class _CollectiveCounter(Measurement):
    def __init__(self, recorder, runs):
        super().__init__(recorder, runs)
        self.calls, self.bytes, self.ops = Counter(), Counter(), Counter()

    def see(self, func, inputs, result) -> None:
        if not isinstance(func, torch._ops.OpOverload):  # a higher-order operator
            return
        space, _, name = func._schema.name.partition("::")
        if space not in _SPACES or name in _NOT_COLLECTIVES:
            return
        kind = _KINDS.get(name, name)
        self.calls[kind] += 1
        self.ops[f"{space}.{name}"] += 1
        # The dummy tensor of a barrier is not a message.
        args, _ = inputs
        size = 0 if kind == "barrier" else max(_nbytes(x) for x in (*args, result))
        self.bytes[kind] += size

    def __repr__(self) -> str:
        rows = [
            f"{kind}: {n} calls, {self.bytes[kind]:,} bytes"
            for kind, n in sorted(self.calls.items())
        ]
        return "\n".join(rows) or "no collectives"


_SPACES = {"c10d", "_c10d_functional", "_dtensor"}
_NOT_COLLECTIVES = {"wait_tensor", "_wrap_tensor_autograd", "check_for_nan"}
# Any other operator of those namespaces counts under its own name, so that none is lost.
_KINDS = {
    name: kind
    for kind, names in {
        "all_reduce": "allreduce_ allreduce_coalesced_ all_reduce_ all_reduce_coalesced all_reduce_coalesced_",
        "all_gather": "allgather_ _allgather_base_ allgather_coalesced_ allgather_into_tensor_coalesced_ "
        "all_gather_into_tensor all_gather_into_tensor_out all_gather_into_tensor_coalesced",
        "reduce_scatter": "reduce_scatter_ _reduce_scatter_base_ reduce_scatter_tensor_coalesced_ "
        "reduce_scatter_tensor reduce_scatter_tensor_out reduce_scatter_tensor_coalesced",
        "all_to_all": "alltoall_ alltoall_base_ all_to_all_single shard_dim_alltoall",
        "broadcast": "broadcast_",
        "reduce": "reduce_",
        "gather": "gather_",
        "scatter": "scatter_",
        "barrier": "monitored_barrier_",
        "send": "isend",
        "recv": "recv_ recv_any_source_ irecv",
    }.items()
    for name in names.split()
}


def _nbytes(value) -> int:
    """Bytes of all tensors in a tensor or in nested lists of tensors."""
    if isinstance(value, torch.Tensor):
        return value.numel() * value.element_size()
    return sum(map(_nbytes, value)) if isinstance(value, list | tuple) else 0


def _op_name(target) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))
