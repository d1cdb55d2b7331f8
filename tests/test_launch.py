"""Jobs on real ranks: what they give back, and the folder that runs without the book."""
# ruff: noqa: F811 - fixtures are imported, and named again as parameters

import dataclasses
import errno
import os
import socket
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from jobs import CHAPTER, book, job, script, witness  # noqa: F401

from helpers import carry, launch, paths
from helpers.launch import run
from helpers.paths import BookError
from helpers.ranks import dump_plain

HEADER = "$ torchrun --standalone --nproc-per-node 2 _build/cells/part/topic/probe.py   # 2 ranks, "


def test_output_push_and_pull(book, witness, capsys):
    body = """
    rank, world_size, device = init_ranks("cpu")
    total = x.clone() * (rank + 1)
    dist.all_reduce(total)
    print("of", world_size, flush=True)
    os.write(1, b"not UTF-8: \\xff\\n")
    for i in range(5000 if rank else 0):
        print("line", i)
    dist.barrier()
    print("unfinished", end="")
    """
    wanted = job(body, push={"x": torch.ones(2)}, pull=("total", "rank"))
    with witness.watching():
        result = run(wanted)
    witness.assert_nothing_left(ranks=2)

    assert [t.tolist() for t in result.pulled["total"]] == [[3, 3], [3, 3]]
    assert result.pulled["rank"] == [0, 1]
    header, *lines = capsys.readouterr().out.splitlines()
    assert header.startswith(HEADER)
    assert lines[:3] == ["[rank 0] of 2", "[rank 0] not UTF-8: \ufffd", "[rank 0] unfinished"]
    assert all(line.startswith("[rank 1] ") for line in lines[3:])
    assert "[rank 1] ... 4,503 lines left out ..." in lines
    assert lines[-2:] == ["[rank 1] line 4999", "[rank 1] unfinished"]
    assert result.outputs[0] == "of 2\nnot UTF-8: \ufffd\nunfinished"
    folder = carry.published(CHAPTER)
    assert (folder / "probe.py").read_text() == wanted.script.text
    assert torch.load(folder / "probe.pt", weights_only=True)["x"].tolist() == [1, 1]


def test_what_a_body_left_for_its_end_still_happens(book):
    body = """
    import atexit, threading
    rank, world_size, device = init_ranks("cpu")
    atexit.register(print, "atexit")
    threading.Thread(target=lambda: (time.sleep(0.5), print("thread"))).start()
    """
    assert list(run(job(body)).outputs) == ["thread\natexit"] * 2


def test_no_rank_goes_on_while_another_connects(book, tmp_path):
    body = f"""
    from pathlib import Path
    from torch.distributed import distributed_c10d as c10d
    connect, connected = c10d._new_process_group_helper, Path({str(tmp_path / "connected")!r})
    def slowly(*args, **options):
        group = connect(*args, **options)
        time.sleep(1)
        connected.touch()
        return group
    if os.environ["RANK"] == "1":
        c10d._new_process_group_helper = slowly
    init_ranks("cpu")
    print(connected.exists(), "TORCH_DIST_INIT_BARRIER" in os.environ)
    """
    assert list(run(job(body)).outputs) == ["True False"] * 2


def test_a_copied_folder_runs_elsewhere_with_two_agents(book, tmp_path):
    """In an environment without this repository; the agents meet through c10d."""
    body = """
    rank, world_size, device = init_ranks("cpu")
    from helpers.lessons.signs import check_sign
    check_sign(rank)
    dist.all_reduce(x)
    print(rank, "of", world_size, x.item(), os.path.dirname(sys.modules["helpers"].__file__))
    """
    text = script(body, push=["x"], pull=["rank"]).text
    copy = tmp_path / "cluster"
    folder = carry.script_folder("probe", text, dump_plain({"x": torch.ones(1)}, "push"))
    carry.write(folder, copy)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "env"], check=True)
    [site_packages] = (tmp_path / "env").glob("lib/python3*/site-packages")
    (site_packages / "torch.pth").write_text(sysconfig.get_path("purelib"))
    python = str(tmp_path / "env" / "bin" / "python")
    env = {n: v for n, v in os.environ.items() if n != "PYTHONPATH"}
    here = {"cwd": tmp_path, "env": env, "text": True}
    installed = subprocess.run([python, "-c", "import helpers"], capture_output=True, **here)
    assert "No module named 'helpers'" in installed.stderr

    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    meet = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{port}", "--rdzv-id", "probe"]
    torchrun = [python, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    command = [*torchrun, *meet, "--log-dir", str(tmp_path / "logs"), str(copy / "probe.py")]
    agents = [subprocess.Popen(command, stdout=subprocess.PIPE, **here) for _ in range(2)]
    try:
        lines = [line for agent in agents for line in agent.communicate(timeout=120)[0].split("\n")]
    finally:
        for agent in agents:
            agent.terminate()
            agent.wait()
    told = sorted(line for line in lines if " of " in line)
    assert told == [f"{rank} of 2 2.0 {copy / 'helpers'}" for rank in range(2)]
    assert sorted(p.name for p in copy.iterdir() if p.is_file()) == ["probe.pt", "probe.py"]


def test_two_kernels_at_once(book):
    """The same cell, edited in one of them: each gets what its own text gives."""
    with ThreadPoolExecutor() as pool:
        jobs = [job(f"r = os.environ['RANK'] + '{x}'", pull=("r",)) for x in "ab"]
        results = list(pool.map(run, jobs))
    assert [result.pulled["r"] for result in results] == [["0a", "1a"], ["0b", "1b"]]
    published = (carry.published(CHAPTER) / "probe.py").read_text()
    assert published in [job.script.text for job in jobs]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nproc": 0}, "--nproc 0: .* whole number from 1"),
        ({"nproc": -1}, "--nproc -1"),
        ({"nproc": "two"}, "--nproc two"),
        ({"nproc": 10**6}, "--nproc 1000000: .* Ask for at most"),
        ({"timeout": 0}, "--timeout 0"),
        ({"label": "../x"}, "--name ../x: use letters"),
        ({"label": "random"}, "--name random: .* hide the module"),
        ({"label": "torch"}, "--name torch: .* hide the module"),
        ({"push": {"f": print}}, "Cannot push `f`: a builtin_function_or_method is not plain"),
        ({"push": {"f": lambda: 1}}, "Cannot push `f`: a function is not plain data"),
        ({"push": {"p": paths.ROOT}}, "Cannot push `p`: a PosixPath is not plain data"),
    ],
)
def test_bad_input(book, change, message):
    with pytest.raises(BookError, match=message):
        run(dataclasses.replace(job("print(1)"), **change))
    assert not paths.BUILD.exists()


def test_a_name_that_a_rank_never_set(book, tmp_path):
    (tmp_path / "pulled.0").write_bytes(dump_plain({"r": 1}, "pull"))
    (tmp_path / "pulled.1").write_bytes(dump_plain({}, "pull"))
    with pytest.raises(BookError, match="--pull r: rank 1 ended without setting `r`"):
        launch._pulled(job("r = 1", pull=("r",)), tmp_path)


def test_the_disk_is_full(book, monkeypatch):
    def write(files, folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(carry, "write", write)
    with pytest.raises(BookError, match=r"disk .* is full. Free some space"):
        run(job("print(1)"))
    assert [p.name for p in (paths.BUILD / "runs").iterdir()] == [".lock"]


def test_the_folder_of_a_script(book):
    """It carries what is needed, no more; and the same for the same script."""
    imports = ["helpers.ranks", "helpers.lessons.signs"]
    text = "".join(f"import {name}\n" for name in imports) + "from helpers import BookError\n"
    files = carry.script_folder("probe", text, None)
    helpers = {"__init__", "devices", "lessons/__init__", "lessons/signs", "paths", "ranks"}
    assert set(files) == {"probe.py", *(f"helpers/{name}.py" for name in helpers)}
    assert files["helpers/lessons/signs.py"].decode().split("\n").index("def check_sign(x):") > 10
    assert files == carry.script_folder("probe", text, None)
    with pytest.raises(BookError, match=r"helpers.nonesuch, and there is no such module"):
        carry.script_folder("probe", "import helpers.nonesuch", None)
