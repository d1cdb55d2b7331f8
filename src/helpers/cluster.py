"""An emulated cluster: hosts that are network namespaces, and wires of a declared rate.

Each host has one wire to a switch (a bridge), throttled in both directions by `tc tbf`, and one
torchrun agent; the agents meet through the c10d rendezvous, as on real machines. Everything stands
in a network namespace that belongs to the job's processes, without a name or a file: when the last
process ends, by whatever cause, the kernel takes the links and the queues away.

This file is also a program, the parent of the agents: see `main`. Facts: tc-tbf(8), unshare(1).
"""

import contextlib
import ctypes
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

MOST_HOSTS = 8
LEAST, MOST = 1e6, 10e9  # bit/s of a wire; above it the processors are the limit, not the wire
UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
BURST = 32 * 1024  # bytes that pass a wire at once, after a rest: measure only larger messages
QUEUE = "200ms"  # what waits for a wire; what comes beyond is dropped, and TCP sends it again
PORT = 29400  # of the rendezvous, in namespaces where nothing else listens
GRACE = 3.0  # seconds that the other hosts have once one has failed
POLL = 0.05  # seconds
TOOLS = ("ip", "tc", "unshare", "nsenter")  # iproute2 and util-linux
WAYS = {
    "as root": ["unshare", "--net"],
    "in a user namespace": ["unshare", "--user", "--map-root-user", "--net"],
}
PROBE = (
    "ip link add switch type bridge && ip link add near type veth peer name far && "
    f"tc qdisc add dev near root tbf rate 1mbit burst {BURST} latency {QUEUE} && unshare --net true"
)
HOW_TO_ENABLE = (
    "It needs Linux with iproute2 and util-linux, and root or user namespaces. Ubuntu since 24.04: "
    "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`; an older Debian: `sudo sysctl "
    "kernel.unprivileged_userns_clone=1`; Docker: `--cap-add SYS_ADMIN --cap-add NET_ADMIN "
    "--security-opt seccomp=unconfined --security-opt apparmor=unconfined`; macOS and Windows: a "
    "Linux virtual machine or WSL 2."
)


def parse_wires(text: str, hosts: int) -> tuple[str, ...]:
    """The rate of each host's wire, from "200mbit" (all alike) or "200mbit,50mbit" (one a host).

    Raises BookError for another number of rates, another unit, or a rate out of range.
    """
    from helpers.paths import BookError

    rates = text.split(",")
    for rate in rates:
        if not re.fullmatch(r"\d+(\.\d+)?(kbit|mbit|gbit)", rate):
            raise BookError(f"--wire {rate}: write a rate such as 200mbit, 800kbit or 1.5gbit.")
        if not LEAST <= bits_per_second(rate) <= MOST:
            raise BookError(f"--wire {rate}: from 1mbit to 10gbit can be emulated.")
    if len(rates) not in (1, hosts):
        raise BookError(
            f"--wire {text}: {len(rates)} rates for {hosts} hosts. Give one, or one each."
        )
    return tuple(rates * hosts if len(rates) == 1 else rates)


def bits_per_second(rate: str) -> float:
    """Of a rate such as "200mbit": 2e8."""
    return float(rate[:-4]) * UNITS[rate[-4:]]


@functools.cache
def way() -> tuple[list[str] | None, str]:
    """The command that opens a network of our own, or None; and which way, or why there is none."""
    if missing := [tool for tool in TOOLS if not shutil.which(tool, path=_path())]:
        return None, f"there is no `{missing[0]}` here"
    why = ""
    for name, command in WAYS.items():
        probe = [*command, "sh", "-c", PROBE]
        done = subprocess.run(
            probe, env=os.environ | {"PATH": _path()}, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return command, name
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return None, why


def why_not() -> str:
    """Why no cluster can be emulated on this machine, and how to enable it; "" where it can."""
    found, reason = way()
    return "" if found else f"No cluster can be emulated here: {reason}. {HOW_TO_ENABLE}"


def recorded(name: str, pull: tuple[str, ...]) -> dict[str, list]:
    """What was pulled in the run that data/measured/<name>.json records; says so in print."""
    from helpers.paths import BookError, read_data

    record = json.loads(read_data(f"measured/{name}.json"))
    if missing := [wanted for wanted in pull if wanted not in record["pulled"]]:
        raise BookError(f"--recorded {name}: that run did not pull `{missing[0]}`.")
    print(f"NOT RUN HERE. {why_not()}")
    print(f"Recorded instead: {record['date']}, {record['machine']}, {record['versions']}.")
    return {wanted: record["pulled"][wanted] for wanted in pull}


def command(hosts: int, wires: tuple[str, ...], per_host: int, run: Path, script: str) -> list[str]:
    """The command line of `main` for a job. Raises BookError where namespaces are not to be had."""
    from helpers import agent
    from helpers.paths import BookError

    if reason := why_not():
        raise BookError(reason)
    assert len(wires) == hosts
    job = {"wires": wires, "per_host": per_host, "run": str(run), "script": script}
    return [*way()[0], sys.executable, "-I", __file__, json.dumps(job | {"agent": agent.COMMAND})]


def main(job: dict) -> int:
    """Runs in a new network: build the cluster, run an agent on each host, return the exit code.

    job: {wires: a rate for each host, per_host: ranks, run: folder, script: path, agent: command}.
    """
    _die_with_parent()
    run, wires = Path(job["run"]), job["wires"]
    os.environ["PATH"] = _path()
    _call("ip link add switch up type bridge")
    agents = [_host(number, wire, job) for number, wire in enumerate(wires)]
    for agent in agents:  # every wire is in place
        agent.stdin.close()
    failed = None
    while None in (codes := [agent.poll() for agent in agents]):
        _logs_as_of_one_machine(run, len(wires), job["per_host"])
        if any(codes):
            failed = failed or time.monotonic()
            if time.monotonic() > failed + GRACE:
                break  # the others may wait for ever for a host that is gone
        time.sleep(POLL)
    _logs_as_of_one_machine(run, len(wires), job["per_host"])
    return next((code for code in codes if code), 0)  # what still runs ends with us


def _host(number: int, wire: str, job: dict) -> subprocess.Popen:
    """A host with its wire, and the agent that starts there once our end of its pipe is closed."""
    address = f"10.77.0.{number + 1}"  # the rendezvous numbers the hosts in the order of addresses
    agent = [*job["agent"], "--nnodes", str(len(job["wires"]))]
    agent += ["--nproc-per-node", str(job["per_host"]), "--rdzv-backend", "c10d"]
    agent += ["--rdzv-endpoint", f"10.77.0.1:{PORT}", "--rdzv-id", "book", "--local-addr", address]
    agent += ["--rdzv-conf", f"is_host={int(number == 0)}", "--redirects", "3"]
    agent += ["--log-dir", f"{job['run']}/hosts/{number}", job["script"]]
    here = {"GLOO_SOCKET_IFNAME": "wire", "CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.Popen(
        ["unshare", "--net", "sh", "-c", 'read line; exec "$@" </dev/null', "sh", *agent],
        stdin=subprocess.PIPE,
        env=os.environ | here,
        preexec_fn=_die_with_parent,
    )
    while os.readlink(f"/proc/{process.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        time.sleep(0.001)
    inside = f"nsenter --target {process.pid} --net"
    throttle = f"root tbf rate {wire} burst {BURST} latency {QUEUE}"
    _call(f"ip link add port{number} type veth peer name wire netns {process.pid}")
    _call(f"ip link set port{number} master switch up")
    _call(f"tc qdisc add dev port{number} {throttle}")
    _call(f"{inside} ip link set lo up")
    _call(f"{inside} ip addr add {address}/24 dev wire")
    _call(f"{inside} ip link set wire up")
    _call(f"{inside} tc qdisc add dev wire {throttle}")
    return process


def _logs_as_of_one_machine(run: Path, hosts: int, per_host: int) -> None:
    """Agents number the logs of their ranks from 0; the notebook looks for a rank of the world."""
    (run / "logs/all/attempt_0").mkdir(parents=True, exist_ok=True)
    for number in range(hosts):
        for place in (run / f"hosts/{number}").glob("*/attempt_0/*"):
            link = run / f"logs/all/attempt_0/{number * per_host + int(place.name)}"
            with contextlib.suppress(FileExistsError):
                link.symlink_to(place)


def _call(line: str) -> None:
    subprocess.run(line.split(), check=True, stdin=subprocess.DEVNULL)


def _path() -> str:
    """PATH with the folders of `ip` and `tc`, which Debian leaves out for users."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def _die_with_parent() -> None:
    """A new user namespace clears the signal that our parent had asked for."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
