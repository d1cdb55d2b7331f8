"""Bytes held by tensors over time, counted by storage."""

import weakref
from collections import Counter
from collections.abc import Iterable

import torch

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
    step            operations so far, to mark a phase on the timeline
    """

    def __init__(self, recorder: GraphRecorder | None = None, runs: int | None = None):
        super().__init__(recorder, runs)
        self.step, self.peak = 0, 0
        self.timeline: list[tuple[int, int]] = []
        self._live: dict[int, _Storage] = {}
        self._at_peak: list[tuple[_Storage, int]] = []

    def tag(self, kind: str, tensors: object) -> None:
        """Name what these tensors' storages are; `tensors` may be nested lists and dicts.

        It may come late: the peak is then told by the new name too. None and numbers in the
        structure (a missing gradient, a step count) are skipped.
        """
        if isinstance(tensors, str | torch.nn.Module):
            raise BookError("tag() takes tensors: model.parameters(), not the module.")
        for tensor in _tensors(tensors):
            for storage in _storages(tensor):
                self._follow(storage).kind = kind
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
    def current_by_kind(self) -> dict[str, int]:
        self._sample()
        return _by_kind((storage, storage.nbytes) for storage in self._live.values())

    def _follow(self, storage: torch.UntypedStorage) -> "_Storage":
        known = self._live.get(id(storage))
        if known is None or known.ref() is not storage:  # an id is used again after a death
            known = self._live[id(storage)] = _Storage(storage)
        return known

    def _sample(self) -> int:
        # Sizes are read again each time: resize_(0) passes no dispatcher.
        for key, storage in list(self._live.items()):
            if not storage.read():
                del self._live[key]
        total = sum(storage.nbytes for storage in self._live.values())
        if not self.timeline or total != self.timeline[-1][1]:
            self.timeline.append((self.step, total))
        if total > self.peak:
            self.peak = total
            self._at_peak = [(s, s.nbytes) for s in self._live.values() if s.nbytes]
        return total

    def __repr__(self) -> str:
        kinds = ", ".join(f"{kind} {size:,}" for kind, size in self.peak_by_kind.items())
        return f"peak {self.peak:,} bytes ({kinds}), now {self.current:,}"


class _Storage:
    """Size and kind of one storage; it outlives the storage, which it holds weakly."""

    def __init__(self, storage: torch.UntypedStorage):
        self.ref, self.kind, self.nbytes = weakref.ref(storage), "activations", storage.nbytes()

    def read(self) -> bool:
        """Read the size again; False once the storage is gone."""
        storage = self.ref()
        self.nbytes = 0 if storage is None else storage.nbytes()
        return storage is not None


def _by_kind(sizes: Iterable[tuple[_Storage, int]]) -> dict[str, int]:
    total = Counter()
    for storage, nbytes in sizes:
        total[storage.kind] += nbytes
    return dict(sorted(total.items()))


def _tensors(tree: object) -> Iterable[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        yield tree
    elif isinstance(tree, dict):
        yield from _tensors(tree.values())
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
    elif tensor.layout == torch.strided and tensor.device.type != "meta":
        storage = tensor.untyped_storage()
        if storage.device.type != "meta":
            yield storage
