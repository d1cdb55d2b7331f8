"""Bytes held by tensors over time, counted by storage."""

from collections import Counter
from collections.abc import Iterable

import torch
from torch.utils.weak import WeakIdKeyDictionary

from helpers.compat import is_traceable_wrapper_subclass
from helpers.counting import GraphRecorder, Measurement
from helpers.paths import BookError


class StorageTracker(Measurement):
    """Context manager that follows the bytes of all storages that operations touch.

        tracker = StorageTracker()
        tracker.tag("parameters", model.parameters())
        with tracker:
            model(x).sum().backward()
            tracker.tag("gradients", (p.grad for p in model.parameters()))
        tracker.peak, tracker.peak_by_kind

    Bytes are the sizes of storages on all devices together, so that a CPU and a GPU agree; a
    CUDA allocator rounds each up to 512. A view costs nothing, `resize_(0)` frees, and meta
    tensors (FakeTensors too) count as nothing. What was never tagged is an activation: inputs
    and temporaries are among them. Storages are held weakly.

    Not seen: memory inside an operator or an Inductor kernel, whose buffers pass no dispatcher
    (measure with backend "aot_eager", or take the profiler's figures), the inside of a
    higher-order operator, sparse tensors. `recorder`, `runs`: see Measurement.

    peak, current   bytes
    peak_by_kind, current_by_kind   {kind: bytes}
    timeline        [(step, bytes)], a step being one operation; only where bytes changed
    timeline_by_kind   [(step, {kind: bytes})], the same moments
    step            operations so far, to mark a phase on the timeline
    """

    def __init__(self, recorder: GraphRecorder | None = None, runs: int | None = None):
        super().__init__(recorder, runs)
        self.step, self.peak = 0, 0
        self.timeline: list[tuple[int, int]] = []
        self._kinds = WeakIdKeyDictionary()  # of each live storage: a [kind], shared with the peak
        self._at_peak: list[tuple[list[str], int]] = []
        self._moments: list[tuple[int, list[tuple[list[str], int]]]] = []

    def tag(self, kind: str, tensors: object) -> None:
        """Name what these tensors' storages are; `tensors` may be nested lists and dicts.

        It may come late: the peak is then told by the new name too. None and numbers in the
        structure (a missing gradient, a step count) are skipped.
        """
        if isinstance(tensors, str | torch.nn.Module):
            raise BookError("tag() takes tensors: model.parameters(), not the module.")
        for tensor in _tensors(tensors):
            for storage in _storages(tensor):
                self._follow(storage)[0] = kind
        self._sample()

    def see(self, func, inputs, result) -> None:
        self.step += 1
        for tensor in _tensors((inputs, result)):
            for storage in _storages(tensor):
                self._follow(storage)
        self._sample()

    @property
    def current(self) -> int:
        # What died since the last operation is gone too.
        return self._sample()

    @property
    def peak_by_kind(self) -> dict[str, int]:
        return _by_kind(self._at_peak)

    @property
    def timeline_by_kind(self) -> list[tuple[int, dict[str, int]]]:
        return [(step, _by_kind(sizes)) for step, sizes in self._moments]

    @property
    def current_by_kind(self) -> dict[str, int]:
        return _by_kind((kind, storage.nbytes()) for storage, kind in self._kinds.items())

    def _follow(self, storage: torch.UntypedStorage) -> list[str]:
        return self._kinds.setdefault(storage, ["activations"])

    def _sample(self) -> int:
        # Sizes are read again each time: resize_(0) passes no dispatcher.
        sizes = [(kind, storage.nbytes()) for storage, kind in self._kinds.items()]
        total = sum(nbytes for _, nbytes in sizes)
        if not self.timeline or total != self.timeline[-1][1]:
            self.timeline.append((self.step, total))
            self._moments.append((self.step, sizes))
        if total > self.peak:
            self.peak, self._at_peak = total, sizes
        return total

    def __repr__(self) -> str:
        kinds = ", ".join(f"{kind} {size:,}" for kind, size in self.peak_by_kind.items())
        return f"peak {self.peak:,} bytes ({kinds}), now {self.current:,}"


def _by_kind(sizes: Iterable[tuple[list[str], int]]) -> dict[str, int]:
    total = Counter()
    for (kind,), nbytes in sizes:
        total[kind] += nbytes
    return {kind: nbytes for kind, nbytes in sorted(total.items()) if nbytes}


def _tensors(tree: object) -> Iterable[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, dict):
        yield from _tensors(tree.values())
    elif isinstance(tree, torch.UntypedStorage):
        return  # an argument of set_(); as an iterable it would be read byte by byte
    elif isinstance(tree, Iterable) and not isinstance(tree, str | bytes):
        for item in tree:
            yield from _tensors(item)


def _storages(tensor: torch.Tensor) -> Iterable[torch.UntypedStorage]:
    """Storages of a tensor, of the local part of a DTensor; none of meta and sparse tensors."""
    if is_traceable_wrapper_subclass(tensor):
        names, _ = tensor.__tensor_flatten__()
        for inner in (getattr(tensor, name) for name in names):
            if isinstance(inner, torch.Tensor):  # not so for a device mesh
                yield from _storages(inner)
    elif tensor.layout == torch.strided:
        storage = tensor.untyped_storage()
        if storage.device.type != "meta":
            yield storage
