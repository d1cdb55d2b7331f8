"""Reads what a machine says of its own wiring: `nvidia-smi topo`, `rocm-smi`, NCCL and RCCL XML.

Read right or refused. A file that was cut, clipped or glued is refused with the row or the field
at which it shows; nothing is guessed.
"""

import re
from dataclasses import dataclass, field

from helpers.paths import BookError

KINDS = ("NV", "XGMI", "PIX", "PXB", "PHB", "NODE", "SYS")
MOST_CPUS = 65_536


class TopologyError(BookError):
    """The text is no topology, or not a whole one; the message names the row or the field."""


@dataclass(frozen=True)
class Link:
    """The way between two devices.

    kind         one of KINDS, or the source's own name ("HT", "PCIE", a P2P status such as "CNS")
    lanes        bonded links, 18 for NV18; None where the source counts none
    gb_per_s     GB/s in one direction, computed from what the source says; None where it is silent
    """

    kind: str
    lanes: int | None = None
    gb_per_s: float | None = None


@dataclass(frozen=True)
class TopologyFile:
    """A whole topology. GPUs and NICs are named as in the source and stand in its order.

    source    "nvidia-smi topo -m", "nvidia-smi topo -p2p", "rocm-smi --showtopo" or "NCCL XML"
    """

    source: str
    gpus: tuple[str, ...]
    nics: tuple[str, ...] = ()
    _links: dict[frozenset[str], Link] = field(default_factory=dict, repr=False)
    _numa: dict[str, int] = field(default_factory=dict, repr=False)
    _cpus: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False)

    def link(self, i: int | str, j: int | str) -> Link:
        """The link between two devices, each a name or the number of a GPU; the same both ways."""
        a, b = self._name(i), self._name(j)
        if a == b:
            raise TopologyError(f"{a} has no link to itself.")
        return self._links[frozenset((a, b))]

    def numa(self, i: int | str) -> int | None:
        """The NUMA node whose CPUs are nearest to a GPU; None where the source does not say."""
        return self._numa.get(self._name(i))

    def cpus(self, i: int | str) -> tuple[int, ...]:
        """The CPUs nearest to a GPU, ascending; empty where the source does not say."""
        return self._cpus.get(self._name(i), ())

    def _name(self, device: int | str) -> str:
        if isinstance(device, int) and 0 <= device < len(self.gpus):
            return self.gpus[device]
        if device in self.gpus or device in self.nics:
            return str(device)
        raise TopologyError(
            f"No device {device!r}. GPUs, by number or name: {', '.join(self.gpus)}; "
            f"NICs, by name: {', '.join(self.nics) or 'none'}."
        )


def read_topology(text: str) -> TopologyFile:
    """The topology in `text`, told by its content. Raises TopologyError, and nothing else."""
    from helpers import topology_tables, topology_xml

    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)  # nvidia-smi underlines its header
    if text.lstrip("\ufeff \t\r\n").startswith("<"):
        return topology_xml.read(text)
    if "Link Type between two GPUs" in text:
        return topology_tables.read_rocm(text)
    return topology_tables.read_nvidia(text)


def parse_cpus(text: str, where: str) -> tuple[int, ...]:
    """CPU numbers of a list such as "0-23,48-71"."""
    cpus: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, -1)
        if not cpus_follow(cpus, first, last):
            raise TopologyError(
                f"{where}: {text!r} is no list of CPUs, ascending, as in 0-23,48-71."
            )
        cpus += range(first, last + 1)
    return tuple(cpus)


def cpus_follow(cpus: list[int], first: int, last: int) -> bool:
    """A range that goes upwards, after all that came before it, on a machine that can exist."""
    return (not cpus or cpus[-1] < first) and first <= last < MOST_CPUS


def check_names(names: list[str]) -> None:
    """Refuse a device that stands twice: its links could not be told apart."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TopologyError(f"{twice[0]} stands twice. Was the text pasted twice?")
