"""What runs inside a rank. A script carries this file, so it works where the book is not.

A script that the magic wrote calls `begin` and `end` around its body; the body calls
`init_ranks`. BOOK_RUN names the folder of a run that a notebook watches. Without it (a
script started by hand, with `torchrun --nnodes ...`, or under Slurm) nothing is written.
"""

import atexit
import ctypes
import json
import os
import re
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from helpers.devices import choose
from helpers.paths import BookError

if TYPE_CHECKING:
    import torch

PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>


class Ranks(NamedTuple):
    """What a rank knows of itself: rank, world_size (ints) and its device."""

    rank: int
    world_size: int
    device: "torch.device"


def init_ranks(device: str = "auto") -> Ranks:
    """Join the process group, with the backend and device of `helpers.devices.choose`.

    Returns when all ranks have joined. `end` leaves the group again. Raises BookError without
    torchrun or Slurm.
    """
    import torch
    import torch.distributed as dist

    _read_slurm()
    try:
        local_rank, here = (int(os.environ[n]) for n in ("LOCAL_RANK", "LOCAL_WORLD_SIZE"))
    except KeyError:
        command = f"torchrun --standalone --nproc-per-node 2 {sys.argv[0]}"
        raise BookError(f"This script runs on several ranks. Start it with: {command}") from None
    choice = choose(local_rank, here, torch.cuda.device_count(), device)
    mine = torch.device(choice.device)
    if mine.type == "cuda":
        torch.cuda.set_device(mine)
    # Without it a rank with little to do may be gone while another still connects to it (gloo).
    os.environ["TORCH_DIST_INIT_BARRIER"] = "1"
    try:
        nccl = choice.backend == "nccl"
        dist.init_process_group(choice.backend, device_id=mine if nccl else None)
    finally:
        del os.environ["TORCH_DIST_INIT_BARRIER"]  # a fake group has no store to wait at
    if (run := _watched_run()) and dist.get_rank() == 0:
        _write(run / "ran_on", f"{choice.backend} on {mine.type}".encode())
    return Ranks(dist.get_rank(), dist.get_world_size(), mine)


def begin(*pushed: str) -> list:
    """Mark that this rank has reached its body; return the pushed values, in this order.

    They lie beside the script, in a file of its name with the suffix .pt; tensors arrive
    on the CPU.
    """
    if run := _watched_run():
        sys.excepthook = _write_error
        _die_with_parent()
        _write(run / f"ready.{os.environ['RANK']}", str(os.getpid()).encode())
    if not pushed:
        return []
    file = Path(sys.modules["__main__"].__file__).with_suffix(".pt")
    if not file.is_file():
        raise BookError(f"{file.name} must lie beside the script: it holds {', '.join(pushed)}.")
    values = load_plain(file)
    return [values[name] for name in pushed]


def end(names: dict, *pulled: str) -> None:
    """The body ended well: hand `pulled` (those that `names` holds) to the notebook.

    Leaves the process group here and not at exit: a rank that failed must not hang in it. Then
    ends the process. Threads of gloo that still run while the interpreter is taken down can crash
    a rank that has done its work (pytorch/pytorch#179291).
    """
    if pulled and (run := _watched_run()):
        values = {name: names[name] for name in pulled if name in names}
        _write(run / f"pulled.{os.environ['RANK']}", dump_plain(values, "pull"))
    dist = sys.modules.get("torch.distributed")
    if dist and dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush(), sys.stderr.flush()
    os._exit(0)


def dump_plain(values: dict, what: str) -> bytes:
    """`values` as torch.save writes them. BookError unless each is plain data or tensors."""
    import io

    import torch

    for name, value in values.items():
        try:
            torch.save(value, file := io.BytesIO())
            file.seek(0)
            torch.load(file, weights_only=True)
        except Exception as error:  # pickle raises whatever the object's own methods raise
            raise BookError(
                f"Cannot {what} `{name}`: a {type(value).__name__} is not plain data. Use tensors, "
                f"numbers, strings, and lists, tuples or dicts of these."
            ) from error
    torch.save(values, file := io.BytesIO())
    return file.getvalue()


def load_plain(file: Path) -> dict:
    """What `dump_plain` wrote; tensors on the CPU."""
    import torch

    return torch.load(file, weights_only=True, map_location="cpu")


def _watched_run() -> Path | None:
    run = os.environ.get("BOOK_RUN")
    return Path(run) if run else None


def _write(file: Path, content: bytes) -> None:
    """All or nothing: whoever finds `file` finds it whole."""
    scratch = file.with_name(f".{file.name}.{os.getpid()}")
    scratch.write_bytes(content)
    os.replace(scratch, file)


def _write_error(kind, error, trace) -> None:
    """As sys.excepthook: leave the error for the notebook, which shows where it happened."""
    text = "".join(traceback.format_exception(kind, error, trace))
    facts = {"time": time.time(), "type": kind.__name__, "message": str(error), "traceback": text}
    try:
        name = f"error.{os.environ['RANK']}"
        _write(_watched_run() / name, json.dumps(facts).encode())
    except OSError:  # a full disk: the log may still take the traceback
        sys.__excepthook__(kind, error, trace)


def _die_with_parent() -> None:
    """Linux: if torchrun is killed together with its supervisor, this rank is too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _read_slurm() -> None:
    """`srun python script.py`: Slurm's variables under the names that torch reads."""
    env = os.environ
    if "RANK" in env or "SLURM_PROCID" not in env:
        return
    if "MASTER_ADDR" not in env:
        command = "export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)"
        raise BookError(f"The ranks must know where to meet. Before srun: {command}")
    on_each_node = re.findall(r"(?:^|,)(\d+)", env["SLURM_TASKS_PER_NODE"])  # as in "4(x2),3"
    env.setdefault("MASTER_PORT", "29500")
    env["RANK"], env["WORLD_SIZE"] = env["SLURM_PROCID"], env["SLURM_NTASKS"]
    env["LOCAL_RANK"], env["LOCAL_WORLD_SIZE"] = env["SLURM_LOCALID"], max(on_each_node, key=int)
