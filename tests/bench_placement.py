"""Placements on the emulated cluster against their prediction, and a large plan. `make bench`.

Writes data/measured/placements.json, which the page shows where no cluster can be emulated.
"""

import json
import platform
import subprocess
import time
from datetime import UTC, datetime
from statistics import median

import pytest
import torch

from helpers import cluster, devices, launch, paths
from helpers.lessons.booked_bytes import Cluster, Network, Traffic
from helpers.lessons.machine_topology import machine
from helpers.lessons.schedule_on_a_wire import unlucky_mesh
from helpers.lessons.topology_scheduling import schedule
from helpers.slicing import slice_cell

NEAR = 0.25  # of the predicted speed-up
MOST_SECONDS = 2.0
LAUNCHED = [[0, 1], [2, 3]]
BODY = """
from helpers.lessons.schedule_on_a_wire import timed_placements
from helpers.ranks import init_ranks

rank, _, _ = init_ranks("cpu")
seconds = timed_placements({grids!r}, rank, rounds=9)
"""


def test_speed_up_is_as_predicted(capsys):
    if reason := cluster.why_not():
        pytest.skip(reason)
    _, plan = unlucky_mesh()
    grids = {"mesh as launched": LAUNCHED, "mesh as planned": plan.devices.tolist()}
    script = slice_cell(BODY.format(grids=grids), [], pull=("seconds",))
    key, wires = "place/schedule_on_a_wire", ("40mbit", "40mbit")
    job = launch.Job("placements", key, script, 4, 300.0, {}, ("seconds",), 2, wires)
    pulled = launch.run(job).pulled
    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{devices.cores()} cores, {platform.system()} {platform.release().split('-')[0]}",
        "versions": f"torch {torch.__version__}, Python {platform.python_version()}, "
        + subprocess.check_output(["tc", "-V"], text=True).strip(),
        "pulled": pulled,
    }
    place = paths.DATA / "measured/placements.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(record) + "\n", encoding="utf-8")
    clock = {name: median(times[1:]) for name, times in pulled["seconds"][0].items()}
    measured = clock["mesh as launched"] / clock["mesh as planned"]
    with capsys.disabled():
        print(f"\nspeed-up of the plan: predicted {plan.speedup:.2f}, measured {measured:.2f}")
        print({name: round(seconds, 3) for name, seconds in clock.items()})
    assert abs(measured / plan.speedup - 1) <= NEAR
    assert clock["two-level"] < clock["ring, host by host"] < clock["ring, alternating"]


def test_a_thousand_cards_are_placed_soon(capsys):
    hosts = Cluster(machine("h100_switch"), 128, Network(50.0, 32, 2))
    traffic = {
        "tp": Traffic("all_reduce", 64e6, 128),
        "dp": Traffic("reduce_scatter", 2e9),
        "ep": Traffic("all_to_all", 16e6, 16),
    }
    took = []
    for _ in range(3):
        start = time.perf_counter()
        schedule(hosts, (8, 32, 4), ("tp", "dp", "ep"), traffic)
        took.append(time.perf_counter() - start)
    with capsys.disabled():
        print(f"\n1024 cards placed in {min(took):.2f} s")
    assert min(took) < MOST_SECONDS
