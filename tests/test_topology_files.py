"""Topologies are read right or refused, whatever the text."""

import re
from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers import paths
from helpers.topology_files import Link, TopologyError, read_topology

SHARED = paths.ROOT.parent / "shared" / "topologies"

PAIRS = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV4\tSYS\tPHB\t0-3,8-11\t0\t\tN/A
GPU1\tNV4\t X \tSYS\tSYS\t\t0\t\tN/A
GPU2\tSYS\tSYS\t X \tSYS\t4-7\t1,3-5\t\t2
NIC0\tPHB\tSYS\tSYS\t X \t\t\t\t

Legend:
  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between
NUMA nodes (e.g., QPI/UPI)
  NV#  = Connection traversing a bonded set of # NVLinks
"""
BARE = """\
      GPU0  GPU1  mlx5_0  CPU Affinity
GPU0   X    HT    PIX     0-7
GPU1  HT     X    SYS     8-15
mlx5_0 PIX  SYS    X
"""
XML = """\
<!-- a comment -->
<system version="1">
  <cpu numaid="1" affinity="1,0000000f" arch="x86_64">
    <pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="8">
        <gpu dev="0" rank="0"><nvlink target="0000:03:00.0" count="2" tclass="0x030200"/></gpu>
      </pci>
      <pci busid="0000:04:00.0" class="0x020700" link_speed="8 GT/s" link_width="16">
        <nic><net name="mlx5_0" dev="0"/></nic>
      </pci>
    </pci>
    <pci busid="0000:03:00.0" class="0x030200" link_speed="" link_width="0">
      <gpu dev="2" rank="1"><nvlink target="0000:02:00.0" count="2" tclass="0x030200"/></gpu>
    </pci>
  </cpu>
  <cpu numaid="-1"><pci busid="0000:05:00.0" class="0x030200"><gpu dev="3"/></pci></cpu>
</system>
"""


def test_matrix_with_tabs_colour_and_empty_cells():
    found = read_topology(PAIRS)
    assert (found.source, found.gpus) == ("nvidia-smi topo -m", ("GPU0", "GPU1", "GPU2"))
    assert found.nics == ("NIC0",)
    assert found.link(0, 1) == found.link("GPU1", "GPU0") == Link("NV", 4, None)
    assert found.link("NIC0", 0).kind == "PHB"
    assert [found.numa(i) for i in range(3)] == [0, 0, 1]
    assert found.cpus(0) == (0, 1, 2, 3, 8, 9, 10, 11) and found.cpus(1) == ()


def test_links_of_other_vendors_keep_their_names():
    found = read_topology(BARE)
    assert found.link(0, 1) == Link("HT") and found.numa(0) is None
    assert found.cpus("GPU1") == tuple(range(8, 16))


def test_status_matrix():
    found = read_topology(" \tGPU0\tGPU1\t\n GPU0\tX\tCNS\t\n GPU1\tCNS\tX\t\n")
    assert found.source == "nvidia-smi topo -p2p" and found.link(0, 1) == Link("CNS")


def test_xml_is_measured_along_its_tree():
    found = read_topology(XML)
    assert found.gpus == ("GPU0", "GPU2", "GPU3") and found.nics == ("mlx5_0",)
    assert found.link(0, 1) == Link("NV", 2)
    assert found.link(0, "mlx5_0") == Link("PIX", None, 8 * 16 / 8 * 128 / 130)
    assert found.link(1, "mlx5_0") == Link("PHB", None, None), "a link without speed"
    assert found.link(0, 2) == Link("SYS")
    assert [found.numa(i) for i in range(3)] == [1, 1, None]
    assert found.cpus(0) == (0, 1, 2, 3, 32), "the low word is the last"


def test_rocm():
    head = "=== Link Type between two GPUs ===\n      GPU0   GPU1\n"
    rows = "GPU0  0      XGMI\nGPU1  XGMI   0\n"
    nodes = (
        "=== Numa Nodes ===\nGPU[0]\t: (Topology) Numa Node: 0\nGPU[1]\t: (Topology) Numa Node: 1\n"
    )
    found = read_topology(head + rows + nodes)
    assert found.link(0, 1) == Link("XGMI") and found.numa(1) == 1
    with pytest.raises(TopologyError, match="Numa Nodes: GPU1 is missing"):
        read_topology(head + rows + nodes.split("GPU[1]")[0])
    with pytest.raises(TopologyError, match="Row GPU1 is missing"):
        read_topology(head + rows.split("GPU1")[0])


@pytest.mark.parametrize(
    ("text", "old", "new", "named"),
    [
        (BARE, "GPU1  HT     X    SYS     8-15\n", "", "Row GPU1 is missing"),
        (BARE, "mlx5_0 PIX  SYS    X\n", "", "Row mlx5_0 is missing"),
        (BARE, "PIX     0-7", "PIX0-7", "Row GPU0"),
        (BARE, "0-7", "-7", "Row GPU0, CPU Affinity"),
        (BARE, "8-15", "8-5", "Row GPU1, CPU Affinity"),
        (BARE, "8-15", "8-99999", "Row GPU1, CPU Affinity"),
        (BARE, "SYS     8-15", "NODE    8-15", "GPU1 to mlx5_0 is 'NODE'"),
        (BARE, "X    HT ", "HT   HT ", "Row GPU0, column GPU0"),
        (BARE, "CPU Affinity", "Colour", "Row Colour is missing"),
        (BARE.replace("HT", "NV1"), "NV1", "NODENODE", "glued"),
        (PAIRS, "NV4", "QQ", "'QQ' is no link that is known or explained"),
        (PAIRS, "GPU1\tNV4", "GPU0\tNV4", "Row GPU0 stands twice"),
        (PAIRS, "\t4-7\t1,3-5", "\t4-71,3-5", "Row GPU2"),
        (XML, 'numaid="1"', "", "<cpu> without numaid"),
        (XML, 'numaid="1"', 'numaid="one"', "numaid='one'"),
        (XML, "1,0000000f", "1,0000000g", "affinity"),
        (XML, 'target="0000:03:00.0"', 'target="0000:09:00.0"', "0000:09:00.0"),
        (XML, 'target="0000:03:00.0" count="2"', 'target="0000:03:00.0" count="1"', "1 NV"),
        (XML, 'busid="0000:03:00.0"', 'busid="0000:02:00.0"', "stands twice"),
        (XML, "</cpu>\n</system>\n", "", "cut or broken"),
        (XML, "<system", "<!DOCTYPE x><system", "DOCTYPE"),
    ],
)
def test_cut_glued_and_clipped_files_are_refused_by_name(text, old, new, named):
    assert old in text
    with pytest.raises(TopologyError, match=re.escape(named)):
        read_topology(text.replace(old, new))


def test_devices_that_are_not_there():
    found = read_topology(BARE)
    for i, j in ((0, 2), (0, 0), ("GPU9", 0), (-1, 0)):
        with pytest.raises(TopologyError):
            found.link(i, j)


# What stands in shared/ and how it must end: GPUs, NICs, some links; None where it is refused.
REAL = {
    "a100-4gpu-nv4-4nic-oldheader.txt": (4, 4, {(0, 1): "NV", (1, "mlx5_1"): "PXB"}),
    "a6000-2gpu-nv4-numa-minus1-nccl-topo.xml": (2, 0, {(0, 1): "NV"}),
    "a6000-3gpu-nv4-pair-numa1.txt": (3, 2, {(0, 2): "NODE", (2, "NIC0"): "PHB"}),
    "a6000-8gpu-nv4-pairs-2nic.txt": (8, 2, {(0, 1): "NV", (1, 2): "NODE", (6, "NIC1"): "PHB"}),
    "amd-4p2h-xgmi-pairs-rccl-topo.xml": (8, 1, {(0, 1): "XGMI", (0, 3): "PXB"}),
    "amd-8gpu-2hive-rocm-smi.txt": (8, 0, {(0, 3): "XGMI", (0, 4): "PCIE"}),
    "amd-mi300x-8gpu-rccl-topo.xml": (8, 8, {(0, 7): "XGMI", (0, "mlx5_0"): "PXB"}),
    "aws-p4d-a100-nccl-topo.xml": (8, 4, {(0, 1): "PIX", (0, 2): "PHB", (0, 4): "SYS"}),
    "azure-ncv4-a100pcie-nccl-graph.xml": None,
    "azure-ncv4-a100pcie-nccl-topo.xml": (4, 0, {(0, 1): "SYS"}),
    "azure-ndv2-v100-nccl-topo.xml": (8, 1, {(0, 1): "PHB", (0, 4): "SYS"}),
    "azure-ndv4-a100-nccl-topo.xml": (8, 8, {(0, 1): "PIX", (1, 2): "SYS"}),
    "consumer-2gpu-wrapped-legend.txt": (2, 0, {(0, 1): "NODE"}),
    "dgx1-like-v100-8gpu-1nic.txt": (8, 1, {(0, 1): "NV", (0, 5): "SYS", (2, "mlx5_0"): "PIX"}),
    "dgx2-16gpu-10nic-excerpt.txt": None,
    "epyc-4x-rtx4090-gap-nccl-topo.xml": (4, 1, {(0, 1): "SYS"}),
    "gb200-4gpu-ansi-tabs-emptycells.txt": (4, 6, {(0, 3): "NV", (0, "NIC5"): "NODE"}),
    "gh200-4gpu-gpu-numa-id.txt": (4, 0, {(0, 3): "NV"}),
    "hgx-h100-8gpu-hand-aligned.txt": (8, 0, {(0, 7): "NV"}),
    "hgx-h20-8gpu-36nic-glued-excerpt.txt": None,
    "hgx-h800-8gpu-glued-affinity.txt": None,
    "hgx-h800-nccl-topo.xml": (8, 8, {(0, 7): "NV", (0, "mlx5_0"): "PIX"}),
    "intel-4x-a6000-pcie3-nccl-topo.xml": (4, 2, {(0, 1): "PHB", (1, 2): "SYS"}),
    "other-vendor-8gpu-ht-links.txt": (8, 0, {(0, 7): "HT"}),
    "pcie-4gpu-crossed-nv4-p2p-matrix.txt": (4, 0, {(0, 3): "OK", (0, 1): "CNS"}),
    "pcie-8gpu-node-pix-2numa.txt": (8, 0, {(0, 1): "PIX", (1, 2): "NODE", (3, 4): "SYS"}),
    "pcie-8gpu-pix-2nic-2numa.txt": (8, 2, {(0, 3): "PIX", (4, "NIC0"): "SYS"}),
    "rtx4090-8gpu-all-sys-tabs.txt": (8, 2, {(0, 1): "SYS", (6, "NIC0"): "PHB"}),
    "rtx5090-2gpu-p2p-matrix.txt": (2, 0, {(0, 1): "GNS"}),
    "rtx5090-2gpu-phb-tabs.txt": (2, 0, {(0, 1): "PHB"}),
    "rtx6000ada-4gpu-no-p2p-links-4nic.txt": (4, 4, {(0, 1): "NODE", (1, 2): "SYS"}),
    "summit-power9-6gpu-glued-header.txt": (6, 4, {(0, 2): "NV", (2, "mlx5_3"): "SYS"}),
    "truncated-8gpu-pxb-numa-na.txt": None,
}
LANES = {
    "dgx1-like-v100-8gpu-1nic.txt": [(0, 3, 2), (0, 1, 1)],
    "gb200-4gpu-ansi-tabs-emptycells.txt": [(0, 1, 18)],
    "hgx-h800-nccl-topo.xml": [(0, 7, 8)],  # through four switches, two links to each
}


@cache
def real_text(name: str) -> str:
    return (SHARED / name).read_bytes().decode()


@pytest.mark.parametrize("name", REAL)
def test_real_files(name):
    if not SHARED.is_dir():
        pytest.skip("no ../shared")
    if REAL[name] is None:
        with pytest.raises(TopologyError, match=r"Row (GPU|NIC)[0-9]+|<graphs>"):
            read_topology(real_text(name))
        return
    gpus, nics, kinds = REAL[name]
    found = read_topology(real_text(name))
    assert (len(found.gpus), len(found.nics)) == (gpus, nics)
    assert {pair: found.link(*pair).kind for pair in kinds} == kinds
    assert all(found.link(i, j).lanes == lanes for i, j, lanes in LANES.get(name, []))


def test_every_real_file_is_listed():
    if not SHARED.is_dir():
        pytest.skip("no ../shared")
    assert {path.name for path in SHARED.iterdir()} - {"SOURCES.md"} == set(REAL)


def outcome(text):
    """What reading a text ends in; another exception than TopologyError ends the test."""
    try:
        return read_topology(text)
    except TopologyError as error:
        assert str(error)
        return None


@settings(max_examples=300, derandomize=True, deadline=None)
@given(st.sampled_from([PAIRS, BARE, XML]), st.data())
def test_a_file_that_ends_early_is_refused_or_loses_nothing(text, data):
    whole, cut = read_topology(text), data.draw(st.integers(0, len(text) - 1))
    found = outcome(text[:cut])
    assert found is None or found == whole


@settings(
    max_examples=400,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.sampled_from([PAIRS, BARE, XML]), st.data())
def test_no_text_raises_anything_else(text, data):
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        until = at + data.draw(st.integers(0, 12))
        text = text[:at] + data.draw(st.text(max_size=8)) + text[until:]
    outcome(text)
    outcome(data.draw(st.text(max_size=200)))
