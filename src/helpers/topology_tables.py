"""The matrices that `nvidia-smi topo` and `rocm-smi --showtopo` print."""

import re

from helpers.topology_files import KINDS, Link, TopologyError, TopologyFile, check_names, parse_cpus

TITLES = {
    "CPU Affinity": "cpus",
    "NUMA Affinity": "numa",
    "Node Affinity": "numa",
    "GPU NUMA ID": "memory node",
}
P2P_STATUS = {"OK", "CNS", "GNS", "TNS", "NS", "DR", "U"}
SILENT = ("", "N/A")
Cells = dict[str, list[str]]  # by row


def read_nvidia(text: str) -> TopologyFile:
    """`nvidia-smi topo -m` or `-p2p`: a header, a row for each device, perhaps a legend."""
    lines = [line.rstrip("\r ") for line in text.splitlines()]
    start = next((n for n, line in enumerate(lines) if _is_header(line)), None)
    if start is None:
        raise TopologyError(
            "No header that begins with GPU0. Known: nvidia-smi topo -m and -p2p, "
            "rocm-smi --showtopo, and the XML of NCCL_TOPO_DUMP_FILE."
        )
    names, titles = _header(lines[start])
    names = _whole_names(names, [_first(line) for line in lines[start + 1 :]])
    cells, ends = _rows(lines[start + 1 :], names, titles)
    kinds = {cell for name, row in cells.items() for cell in row} - {"X"}
    is_p2p = not titles and kinds <= P2P_STATUS
    if not is_p2p:
        _check_kinds(cells, names, _legend(lines))
    devices = {name: dict(zip(titles, end, strict=True)) for name, end in ends.items()}
    gpus = tuple(name for name in names if re.fullmatch(r"GPU[0-9]+", name))
    return TopologyFile(
        source="nvidia-smi topo -p2p" if is_p2p else "nvidia-smi topo -m",
        gpus=gpus,
        nics=tuple(name for name in names if name not in gpus),
        _links=_links(cells, names, "X"),
        **_affinities(devices),
    )


def _is_header(line: str) -> bool:
    tokens = line.split()
    return bool(tokens) and re.match(r"GPU[0-9]", tokens[0]) is not None and "X" not in tokens


def _header(line: str) -> tuple[list[str], list[str]]:
    """Device names, and the titles of the columns after them in their order."""
    found = sorted((line.find(title), title) for title in TITLES if title in line)
    cut = found[0][0] if found else len(line)
    titles = [title for _, title in found]
    rest = re.sub("|".join(TITLES), "", line[cut:]).strip()
    if rest or any(line.count(title) > 1 for title in titles):
        raise TopologyError(f"The header ends in {line[cut:].strip()!r}: known are {list(TITLES)}.")
    return line[:cut].split(), titles


def _first(line: str) -> str:
    return (line.split() or [""])[0]


def _whole_names(names: list[str], first_words: list[str]) -> list[str]:
    """Names that the header glued together, taken apart where the rows prove how."""
    rows = first_words[: next((n for n, word in enumerate(first_words) if not word), None)]
    names = rows if "".join(rows) == "".join(names) else names
    check_names(names)
    return names


def _rows(lines: list[str], names: list[str], titles: list[str]) -> tuple[Cells, Cells]:
    """For each device its cells, and what stands after them. Every row whole, or TopologyError."""
    by_name: dict[str, str] = {}
    for line in lines:
        name = _first(line)
        if not name or (name not in names and by_name):
            break
        if name in by_name:
            raise TopologyError(f"Row {name} stands twice.")
        if name in names:
            by_name[name] = line
    if lost := [name for name in names if name not in by_name]:
        raise TopologyError(f"Row {lost[0]} is missing: the header names it. Was the text cut?")
    whole = {name: _row(name, by_name[name], len(names), titles) for name in names}
    return {name: row[0] for name, row in whole.items()}, {n: row[1] for n, row in whole.items()}


def _row(name: str, line: str, width: int, titles: list[str]) -> tuple[list[str], list[str]]:
    tabbed = [part.strip() for part in line.strip().split("\t")]
    parts = tabbed if len(tabbed) > width else line.split()  # spaces keep no empty cell apart
    cells, end = parts[1 : width + 1], parts[width + 1 :]
    if len(cells) < width:
        raise TopologyError(
            f"Row {name}: {len(cells)} of {width} links. Cut or glued: {cells[-1:]}"
        )
    if len(titles) > 1 and len(end) == len(titles) + 1 and not end[-2]:
        del end[-2]  # nvidia-smi writes two tabs before its last column
    if not any(end) and not name.startswith("GPU"):
        end = [""] * len(titles)  # NICs have no affinity
    end += [""] * (len(titles) - len(end)) if "\t" in line else []
    if len(end) != len(titles) and any([*end, *titles]):
        raise TopologyError(
            f"Row {name}: {end} stands under {titles}. Cells are missing, or glued together."
        )
    return cells, end[: len(titles)]


def _legend(lines: list[str]) -> set[str]:
    """Names of links that the text itself explains: "  HT   = Connection traversing ..."."""
    return {found[1] for line in lines if (found := re.match(r"\s*([A-Z]+)#?\s+= ", line))}


def _check_kinds(cells: Cells, names: list[str], legend: set[str]) -> None:
    known = {"X", *KINDS, *legend}
    for name, row in cells.items():
        for other, cell in zip(names, row, strict=True):
            base, _ = _kind_and_lanes(cell)
            glued = re.fullmatch(rf"(?:(?:{'|'.join(sorted(known - {'X'}))})[0-9]*){{2,}}", cell)
            strange = base not in known and (legend or not re.fullmatch(r"[A-Z]+[0-9]*", cell))
            if base not in known and (glued or strange):
                why = "two cells glued together" if glued else "no link that is known or explained"
                raise TopologyError(f"Row {name}, column {other}: {cell!r} is {why}.")


def _kind_and_lanes(cell: str) -> tuple[str, int | None]:
    found = re.fullmatch(r"(NV|XGMI)([0-9]{1,3})", cell)
    return (found[1], int(found[2])) if found else (cell, None)


def _links(cells: Cells, names: list[str], own: str) -> dict[frozenset[str], Link]:
    """A symmetric matrix with `own` on its diagonal, as links."""
    links = {}
    for row, a in enumerate(names):
        for column, b in enumerate(names):
            there, back = cells[a][column], cells[b][row]
            if (a == b) != (there == own):
                raise TopologyError(
                    f"Row {a}, column {b}: {there!r}, and {own!r} is a device itself."
                )
            if there != back:
                raise TopologyError(f"{a} to {b} is {there!r}, {b} to {a} is {back!r}: which?")
            if a != b:
                links[frozenset((a, b))] = Link(*_kind_and_lanes(there))
    return links


def _affinities(devices: dict[str, dict[str, str]]) -> dict[str, dict]:
    """Fields of TopologyFile. The first node of a NUMA list is the one with CPUs (GH200: 0,5-11)."""
    numa, cpus = {}, {}
    for name, ends in devices.items():
        for title, text in ends.items():
            if text in SILENT:
                continue
            numbers = parse_cpus(text, f"Row {name}, {title}")
            if TITLES[title] == "numa":
                numa[name] = numbers[0]
            elif TITLES[title] == "cpus":
                cpus[name] = numbers
    return {"_numa": numa, "_cpus": cpus}


def read_rocm(text: str) -> TopologyFile:
    """`rocm-smi --showtopo`: matrices under titles, of which the link types are read."""
    sections = re.split(r"^=+ (.*?) =+\s*$", text, flags=re.MULTILINE)
    by_title = dict(zip(sections[1::2], sections[2::2], strict=True))
    lines = [
        line for line in by_title.get("Link Type between two GPUs", "").splitlines() if line.strip()
    ]
    names = lines[0].split() if lines else []
    if not names or not all(re.fullmatch(r"GPU[0-9]+", name) for name in names):
        raise TopologyError("Link Type between two GPUs: no header GPU0 GPU1 ... under this title.")
    check_names(names)
    cells, _ = _rows(lines[1:], names, [])
    for name, row in cells.items():
        if bad := [cell for cell in row if not re.fullmatch(r"0|[A-Z]+", cell)]:
            raise TopologyError(f"Row {name}: {bad[0]!r} is no type of link.")
    numa = {}
    for number, node in re.findall(
        r"GPU\[([0-9]+)\]\s*: \(Topology\) Numa Node: (-?[0-9]{1,5})\b", text
    ):
        numa[f"GPU{number}"] = int(node)
    if numa and (lost := [name for name in names if name not in numa]):
        raise TopologyError(f"Numa Nodes: {lost[0]} is missing. Was the text cut?")
    return TopologyFile(
        source="rocm-smi --showtopo",
        gpus=tuple(names),
        _links=_links(cells, names, "0"),
        _numa={name: node for name, node in numa.items() if node >= 0 and name in names},
    )
