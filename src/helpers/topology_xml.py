"""The XML that NCCL and RCCL read (NCCL_TOPO_FILE) and write (NCCL_TOPO_DUMP_FILE).

Format and rules: NCCL's src/graph/xml.cc and paths.cc. A tree of CPUs (NUMA nodes), PCI bridges
and devices; NVLinks and XGMI links are listed under their GPU.
"""

import re
from dataclasses import dataclass, field
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from helpers.topology_files import MOST_CPUS, Link, TopologyError, TopologyFile, check_names

BRIDGE, NVSWITCH = "0x0604", "0x0680"
GPU_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
NIC_CLASSES = ("0x0200", "0x0207")
# Payload of a lane in GB/s, by its rate in GT/s: 8b/10b encoding, from gen 3 on 128b/130b.
LANES = {2.5: 0.25, 5.0: 0.5, **{rate: rate / 8 * 128 / 130 for rate in (8.0, 16.0, 32.0, 64.0)}}


@dataclass
class Device:
    """A GPU or a NIC, and the way up from it."""

    name: str
    bus_id: str
    cpu: int
    bridges: tuple[str, ...]  # from the CPU down
    rates: tuple[float | None, ...]  # GB/s of each PCI link, from the CPU down
    fabric: dict[tuple[str, str, str], int] = field(default_factory=dict)  # kind, target, class


def read(text: str) -> TopologyFile:
    root = _parse(text)
    cpus, gpus, nics = [], [], []
    explicit = root.find(".//gpu") is not None  # files of clouds list PCI devices alone
    for cpu in root.findall("cpu"):
        number = len(cpus)
        cpus.append((_numa(cpu), _cpus_of_mask(cpu.get("affinity", ""))))
        walk = [(child, (), ()) for child in cpu.findall("pci")]
        while walk:
            pci, bridges, rates = walk.pop(0)
            bus_id, kind = _need(pci, "busid"), pci.get("class", "")[:6]
            rates = (*rates, _rate(pci))
            inner = [(child, (*bridges, bus_id), rates) for child in pci.findall("pci")]
            walk[:0] = inner  # document order
            gpu = pci.find("gpu")
            if gpu is not None or (not explicit and kind in GPU_CLASSES):
                name = f"GPU{_need(gpu, 'dev')}" if gpu is not None else bus_id
                gpus.append(Device(name, bus_id, number, bridges, rates, _fabric(gpu, bus_id)))
            elif pci.find("nic/net") is not None or kind in NIC_CLASSES:
                nics.append(Device(_nic_name(pci, bus_id), bus_id, number, bridges, rates))
    if not gpus:
        raise TopologyError("No GPU in this XML: neither <gpu> nor a PCI device of a GPU's class.")
    check_names([device.bus_id for device in gpus + nics])
    check_names([device.name for device in gpus + nics])
    return TopologyFile(
        source="NCCL XML",
        gpus=tuple(gpu.name for gpu in gpus),
        nics=tuple(nic.name for nic in nics),
        _links=_links(gpus, nics),
        _numa={gpu.name: node for gpu in gpus if (node := cpus[gpu.cpu][0]) is not None},
        _cpus={gpu.name: cpus[gpu.cpu][1] for gpu in gpus},
    )


def _parse(text: str) -> Element:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise TopologyError("A topology has no DOCTYPE and no ENTITY.")
    try:
        root = ElementTree.fromstring(text.lstrip("\ufeff \t\r\n"))
    except (ElementTree.ParseError, ValueError) as error:
        raise TopologyError(f"The XML is cut or broken: {error}.") from None
    if root.tag == "graphs":
        raise TopologyError("<graphs> is what NCCL decided (NCCL_GRAPH_FILE), not a topology.")
    if root.tag != "system" or root.find("cpu") is None:
        raise TopologyError(f"<{root.tag}>: expected <system> with <cpu> inside.")
    return root


def _need(element: Element, name: str) -> str:
    if not (value := element.get(name, "").strip()):
        raise TopologyError(f"<{element.tag}> without {name}.")
    return value


def _number(element: Element, name: str, most: int) -> int:
    """An attribute that is a whole number from -1 to `most`."""
    value = _need(element, name)
    if not re.fullmatch(r"-1|[0-9]{1,6}", value) or int(value) > most:
        raise TopologyError(f"<{element.tag}> {name}={value!r}: no number from 0 to {most}.")
    return int(value)


def _numa(cpu: Element) -> int | None:
    node = _number(cpu, "numaid", MOST_CPUS)
    return None if node < 0 else node


def _cpus_of_mask(mask: str) -> tuple[int, ...]:
    """CPUs of a kernel mask: words of 32 bits in hex, the low word last."""
    words = mask.split(",") if mask else []
    if not all(re.fullmatch(r"[0-9a-fA-F]{1,8}", word) for word in words):
        raise TopologyError(f"<cpu> affinity={mask!r}: no words of up to eight hex digits.")
    if len(words) > MOST_CPUS // 32:
        raise TopologyError(f"<cpu> affinity names more than {MOST_CPUS} CPUs.")
    bits = [(32 * at, int(word, 16)) for at, word in enumerate(reversed(words))]
    return tuple(low + bit for low, word in bits for bit in range(32) if word >> bit & 1)


def _rate(pci: Element) -> float | None:
    """GB/s of the link above a device; None where speed or width is empty, 0 or unknown."""
    speed = re.match(r"([0-9]{1,3}(?:\.[0-9]{1,3})?) GT/s", pci.get("link_speed", ""))
    width = re.fullmatch(r"[0-9]{1,2}", pci.get("link_width", ""))
    lane = LANES.get(float(speed[1])) if speed else None
    return lane * int(width[0]) if lane and width and int(width[0]) else None


def _nic_name(pci: Element, bus_id: str) -> str:
    nets = pci.findall("nic/net")
    return "+".join(net.get("name", bus_id) for net in nets) or bus_id


def _fabric(gpu: Element | None, bus_id: str) -> dict[tuple[str, str, str], int]:
    """Links listed under a GPU. One to itself (seen in Azure's files) says nothing of a peer."""
    found: dict[tuple[str, str, str], int] = {}
    for tag, kind in (("nvlink", "NV"), ("xgmi", "XGMI")):
        for link in gpu.findall(tag) if gpu is not None else ():
            target = _need(link, "target")
            if target != bus_id:
                key = (kind, target, link.get("tclass", "")[:6])
                found[key] = found.get(key, 0) + _number(link, "count", 999)
    return found


def _links(gpus: list[Device], nics: list[Device]) -> dict[frozenset[str], Link]:
    by_bus_id = {gpu.bus_id: gpu for gpu in gpus}
    for gpu in gpus:
        for kind, target, of_class in gpu.fabric:
            if of_class in GPU_CLASSES and target not in by_bus_id:
                raise TopologyError(
                    f"{gpu.name}: {kind} to {target}, which this file does not hold."
                )
    links = {}
    devices = gpus + nics
    for at, a in enumerate(devices):
        for b in devices[at + 1 :]:
            links[frozenset((a.name, b.name))] = _direct(a, b) or _over_pci(a, b)
    return links


def _direct(a: Device, b: Device) -> Link | None:
    """NVLink or XGMI from GPU to GPU, or through NVSwitches that reach all links of both."""
    for kind in ("NV", "XGMI"):
        there, back = (
            sum(
                n
                for (k, target, _), n in one.fabric.items()
                if k == kind and target == other.bus_id
            )
            for one, other in ((a, b), (b, a))
        )
        if there != back:
            raise TopologyError(f"{a.name} has {there} {kind} to {b.name}, and {back} come back.")
        if there:
            return Link(kind, there)
    through = [
        sum(n for (k, _, of_class), n in one.fabric.items() if (k, of_class) == ("NV", NVSWITCH))
        for one in (a, b)
    ]
    return Link("NV", min(through)) if all(through) else None


def _over_pci(a: Device, b: Device) -> Link:
    """PIX through one bridge, PXB through several, PHB through the CPU, SYS from CPU to CPU."""
    if a.cpu != b.cpu:
        return Link("SYS")  # the XML has no rate of the link between sockets
    shared = 0
    while a.bridges[shared : shared + 1] and a.bridges[: shared + 1] == b.bridges[: shared + 1]:
        shared += 1
    rates = a.rates[shared:] + b.rates[shared:]
    slowest = None if None in rates else min(rates)
    if not shared:
        return Link("PHB", None, slowest)
    crossed = 1 + len(a.bridges[shared:]) + len(b.bridges[shared:])
    return Link("PIX" if crossed == 1 else "PXB", None, slowest)
