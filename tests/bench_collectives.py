"""The long sweep behind place/collective_costs.md, on the emulated cluster. `make bench`.

Two layouts of four ranks, two rates, 64 KiB to 16 MiB: about five minutes. The model is fitted on
single messages on one layout at one rate. Writes data/measured/collective_costs.json, which the
page shows; the bars are judged on the run just made.
"""

import json
import platform
import subprocess
from datetime import UTC, datetime
from itertools import combinations
from statistics import quantiles

import pytest
import torch

from helpers import devices, launch, paths
from helpers.lessons.collective_costs import LAYOUTS, RATES, clock, contestants, fit, judged
from helpers.slicing import slice_cell

MOST = 0.20  # of the median clock, from 1 MiB on
CLEAR = 1.30  # of two predicted times; then the winner must be right
BODY = """
from helpers.lessons.collective_costs import LAYOUTS, DelayedWire, contestants, messages, timed
from helpers.ranks import init_ranks

rank, _, _ = init_ranks("cpu")
host_of = LAYOUTS[{layout!r}]
wire = DelayedWire(host_of, rank)
kinds = contestants(host_of) | (messages() if {fit} else {{}})  # one load on the machine for all
rows = []
for sizes, rounds in (([2**16, 2**18, 2**20], 5), ([2**22], 3), ([2**24], 2)):
    rows += timed(kinds, sizes, rounds, wire)
single = [row for row in rows if row[0] in messages()]
rows = [row for row in rows if row[0] not in messages()]
"""


@pytest.fixture(scope="module")
def measured():
    """{layout, rate: rows of each rank}, and the rows of the single messages."""
    found, single = {}, None
    for layout, host_of in LAYOUTS.items():
        for rate in RATES:
            first = not found
            hosts = max(host_of) + 1
            script = slice_cell(BODY.format(layout=layout, fit=first), [], pull=("single", "rows"))
            job = launch.Job(
                *("sweep", "place/collective_costs", script, 4, 900.0, {}, ("single", "rows")),
                *(hosts, (rate,) * hosts),
            )
            pulled = launch.run(job).pulled
            found[f"{layout}, {rate}"] = pulled["rows"]
            single = single or pulled["single"]
    record = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{devices.cores()} cores, {platform.system()} {platform.release().split('-')[0]}",
        "versions": f"torch {torch.__version__}, Python {platform.python_version()}, "
        + subprocess.check_output(["tc", "-V"], text=True).strip(),
        "pulled": {
            "single": single,
            "rows": found["2 hosts of 2, 100mbit"],  # these two stand in for the page's own runs
            "rows4": found["4 hosts of 1, 200mbit"],
            "sweep": found,
        },
    }
    place = paths.DATA / "measured/collective_costs.json"
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(record, default=float) + "\n", encoding="utf-8")
    return fit(clock(single)), found


def test_the_model_is_near_the_clock(measured, capsys):
    model, found = measured
    table = judged(model, found)
    with capsys.disabled():
        for row in table:
            print(f"\n{row.where:24} {row.name:20} {row.nbytes / 2**20:6.2f} MiB", end=" ")
            print(f"clock {row.clock:.3f} s, model {row.model:.3f} s: {row.ratio:.2f}", end="")
    large = [row for row in table if row.nbytes >= 2**20]
    far = [row for row in large if abs(row.ratio - 1) > MOST]
    assert len(large) > 50 and not far, far


def test_the_predicted_winner_wins(measured):
    model, found = measured
    pairs, wrong = 0, []
    table = judged(model, found)
    for a, b in combinations(table, 2):
        if (a.where, a.nbytes) != (b.where, b.nbytes):
            continue
        first, second = sorted((a, b), key=lambda row: row.model)
        spread = max((quantiles(row.rounds)[2] / quantiles(row.rounds)[0]) for row in (a, b))
        if second.model / first.model > max(CLEAR, spread):
            pairs += 1
            wrong += [(first, second)] if first.clock >= second.clock else []
    assert pairs > 20 and not wrong, wrong


def test_contestants_are_many():
    assert all(len(contestants(host_of)) >= 4 for host_of in LAYOUTS.values())
