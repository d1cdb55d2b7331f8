"""The emulated cluster: its hosts and wires, and that no fault leaves a network behind.

The ranks here import no torch, so that a run costs little more than its agents.
"""
# ruff: noqa: F811 - fixtures are imported, and named again as parameters

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from jobs import CHAPTER, LIMIT, book, witness  # noqa: F401

from helpers import cluster, launch, paths
from helpers.launch import Job, TorchrunError
from helpers.magic import parse_line
from helpers.paths import BookError
from helpers.slicing import slice_cell

WIRES = ("200mbit", "200mbit")


def cluster_job(body: str, wires=WIRES, nproc=None, timeout=60.0) -> Job:
    script = slice_cell(body, [])
    return Job("probe", CHAPTER, script, nproc or len(wires), timeout, {}, (), len(wires), wires)


def networks() -> set[str]:
    """The network namespaces of all processes but those of a page that is built beside the tests."""
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it ended, or is not ours to see
            if "BOOK_CHAPTER" not in process.environ():
                found.add(network_of(process))
    return found


def network_of(process) -> str:
    return str(Path(f"/proc/{process.pid}/ns/net").readlink())


@pytest.fixture
def nothing_stays(book, witness):
    """No process of ours, no link, queue or namespace is left after the test."""
    assert not cluster.why_not()

    def seen():
        lines = ["ip -o link", "tc qdisc show", "ip netns list"]
        shown = [subprocess.check_output(line.split(), text=True) for line in lines]
        return [sorted(text.splitlines()) for text in shown]

    before, before_networks = seen(), networks()
    yield witness
    deadline = time.monotonic() + LIMIT
    while (witness.processes() or networks() - before_networks) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not witness.processes()
    assert not networks() - before_networks
    assert seen() == before


@pytest.mark.parametrize("name", cluster.WAYS)
def test_hosts_and_wires(nothing_stays, monkeypatch, name):
    body = """
import os, socket, subprocess
def seen(command):
    return subprocess.check_output(command, shell=True, text=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
keys = "RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GLOO_SOCKET_IFNAME".split()
print(*[os.environ[key] for key in keys], os.readlink("/proc/self/ns/net"))
print(seen("ip -o -4 addr show dev wire").split()[3], end=" ")
print(seen("tc qdisc show dev wire").partition("rate ")[2].split()[0])
"""
    monkeypatch.setattr(cluster, "way", lambda: (cluster.WAYS[name], name))
    outputs = launch.run(cluster_job(body, ("200mbit", "50mbit"), nproc=4)).outputs
    firsts, seconds = zip(*[output.splitlines() for output in outputs], strict=True)
    assert [line.split()[:-1] for line in firsts] == [
        ["0", "4", "0", "2", "0", "wire"],
        ["1", "4", "1", "2", "0", "wire"],
        ["2", "4", "0", "2", "1", "wire"],
        ["3", "4", "1", "2", "1", "wire"],
    ]
    places = [line.split()[-1] for line in firsts]
    ours = str(Path("/proc/self/ns/net").readlink())
    assert places[0] == places[1] != places[2] == places[3] and ours not in places
    assert [line.split()[0] for line in seconds] == ["10.77.0.1/24"] * 2 + ["10.77.0.2/24"] * 2
    assert [line.split()[-1] for line in seconds] == ["200Mbit"] * 2 + ["50Mbit"] * 2


SEND = """
import os, socket, time
rank, size = int(os.environ["RANK"]), 4 * 2**20
if rank == 0:
    server = socket.create_server(("10.77.0.1", 5000))
    for _ in range(2):
        sender, _ = server.accept()
        name, came = sender.recv(1), 0
        begin = time.perf_counter()
        while came < size:
            came += len(sender.recv(2**20))
        print(name.decode(), came / (time.perf_counter() - begin))
        sender.sendall(b"!")
else:
    time.sleep(0.5)
    if rank == 2:
        time.sleep(2)
    wire = socket.create_connection(("10.77.0.1", 5000))
    wire.sendall(str(rank).encode() + bytes(size))
    wire.recv(1)
"""


def test_rates_stand_in_the_declared_ratio(nothing_stays):
    """Host 0 hears host 1 at 200 and host 2 at 50 Mbit/s, one after the other, 4 MB each."""
    output = launch.run(cluster_job(SEND, ("200mbit", "200mbit", "50mbit"))).outputs[0]
    rates = {int(line[0]): float(line[2:]) for line in output.splitlines()}
    assert 3.4 < rates[1] / rates[2] < 4.6  # 4, but for a burst, headers and a busy machine


def test_a_rank_fails(nothing_stays, capsys):
    body = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("here", flush=True)
if os.environ["RANK"] == "1":
    raise ValueError("no wire")
time.sleep(600)
"""
    with pytest.raises(TorchrunError) as caught:
        launch.run(cluster_job(body))
    assert (str(caught.value), caught.value.kind) == ("rank 1: ValueError: no wire", "ValueError")
    assert capsys.readouterr().out.splitlines()[-1] == "rank 0: ended with rank 1"


def test_a_rank_leaves_and_the_other_waits(nothing_stays):
    body = "import os, sys, time\nos.environ['RANK'] == '1' and sys.exit(3)\ntime.sleep(600)"
    with pytest.raises(TorchrunError, match="rank 1: exit code 3"):
        launch.run(cluster_job(body))


def test_the_time_is_up(nothing_stays, capsys):
    body = "import os, time\ndef stuck():\n    time.sleep(600)\nstuck()"
    with pytest.raises(TorchrunError) as caught:
        launch.run(cluster_job(body, timeout=2))
    assert str(caught.value) == "timeout: rank 0 and rank 1 were still running after 2 s"
    out = capsys.readouterr().out
    assert out.count("this cell, line 4, in stuck") == 2


KERNEL = """
import signal, sys, time
from pathlib import Path
from helpers import launch, paths
from helpers.slicing import slice_cell
paths.BUILD = Path(sys.argv[1])
signal.signal(signal.SIGINT, signal.default_int_handler)
script = slice_cell("import time\\nprint('waiting')\\ntime.sleep(600)", [])
wires = ("200mbit", "200mbit")
try:
    launch.run(launch.Job("probe", "part/topic", script, 2, hosts=2, wires=wires))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize("fault", ["interrupt", "kernel killed", "kernel and supervisor killed"])
def test_the_kernel_goes(nothing_stays, monkeypatch, fault):
    monkeypatch.delenv("BOOK_RECORDING")
    start = [sys.executable, "-c", KERNEL, str(paths.BUILD)]
    process = subprocess.Popen(start, stdout=subprocess.PIPE, text=True)
    lines = [process.stdout.readline() for _ in range(3)]
    assert set(lines[1:]) == {"[rank 0] waiting\n", "[rank 1] waiting\n"}
    try:
        places = {network_of(p) for p in nothing_stays.with_argument("probe.py")}
        assert len(places - {network_of(process)}) == 3  # the launcher's and the hosts'
        if fault == "interrupt":
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
            assert process.wait(60) == 0
        elif fault == "kernel and supervisor killed":
            process.send_signal(signal.SIGSTOP)
            for supervisor in nothing_stays.with_argument("supervisor.py"):
                supervisor.kill()
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--hosts 2", "--hosts N and --wire RATE go together"),
        ("--wire 200mbit", "--hosts N and --wire RATE go together"),
        ("--recorded x", "--hosts N and --wire RATE go together"),
        ("--hosts 1 --wire 200mbit", "--hosts 1: from 2 to 8 hosts"),
        ("--hosts two --wire 200mbit", "--hosts two: from 2 to 8 hosts"),
        ("--hosts 9 --wire 200mbit", "--hosts 9: from 2 to 8 hosts"),
        ("--hosts 2 --wire 200", "--wire 200: write a rate such as 200mbit"),
        ("--hosts 2 --wire 0mbit", "--wire 0mbit: from 1mbit to 10gbit"),
        ("--hosts 2 --wire 40gbit", "--wire 40gbit: from 1mbit to 10gbit"),
        ("--hosts 3 --wire 1mbit,2mbit", "2 rates for 3 hosts"),
        ("--hosts 2 --wire 1mbit;reboot", "write a rate"),
        ("--hosts 8 --nproc 9 --wire 1mbit", "at most 64 ranks"),
    ],
)
def test_refused_arguments(line, says):
    with pytest.raises(BookError) as caught:
        parse_line(line)
    assert says in str(caught.value)


def test_accepted_arguments():
    asked = parse_line("--hosts 3 --wire 200mbit,0.05gbit,800mbit --nproc 1")
    assert (asked.hosts, asked.wires) == (3, ("200mbit", "0.05gbit", "800mbit"))
    assert parse_line("--hosts 2 --wire 20mbit").wires == ("20mbit", "20mbit")
    assert parse_line("").wires == ()
    assert cluster.bits_per_second("0.05gbit") == 5e7


@pytest.fixture
def no_cluster(book, monkeypatch):
    monkeypatch.setattr(cluster, "way", lambda: (None, "Operation not permitted"))
    (paths.DATA / "measured").mkdir()
    record = {"date": "2026-01-02", "machine": "3 cores, Linux 6.1", "versions": "torch 9"}
    (paths.DATA / "measured/run.json").write_text(json.dumps(record | {"pulled": {"a": [1, 2]}}))


def test_where_it_cannot_run_it_says_so(no_cluster):
    with pytest.raises(BookError, match=r"No cluster .*: Operation not permitted\. It needs Linux"):
        launch.run(cluster_job("print(1)"))


@pytest.mark.parametrize("strict", ["0", "1"])
def test_a_recorded_run_is_marked_and_never_passes_in_ci(no_cluster, monkeypatch, strict):
    monkeypatch.setenv("STRICT", strict)
    code = f"""
from pathlib import Path
from helpers import cluster, paths
from IPython.testing.globalipapp import start_ipython
paths.DATA, paths.BUILD = Path({str(paths.DATA)!r}), Path({str(paths.BUILD)!r})
cluster.way = lambda: (None, "Operation not permitted")
shell = start_ipython()
shell.run_line_magic("load_ext", "helpers")
shell.run_cell("%%torchrun --hosts 2 --nproc 1 --wire 1mbit --pull a --recorded run\\na = 1")
print(shell.user_ns.get("a"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    said = "NOT RUN HERE. No cluster can be emulated here: Operation not permitted."
    assert (said in done.stdout) == (strict == "0"), done.stderr
    label = "Recorded instead: 2026-01-02, 3 cores, Linux 6.1, torch 9.\n"
    assert (label in done.stdout) == (strict == "0")
    assert done.stdout.endswith("[1, 2]\n" if strict == "0" else "None\n")


def test_a_recorded_run_without_the_value(no_cluster):
    with pytest.raises(BookError, match="did not pull `b`"):
        cluster.recorded("run", ("b",))
