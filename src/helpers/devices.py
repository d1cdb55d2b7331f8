"""The one rule that gives a rank its backend and its device, and what this machine is."""

import os
import platform
import shutil
import subprocess
import sys
from typing import NamedTuple

from helpers.paths import BookError

DEVICES = ("auto", "cpu", "cuda", "shared-gpu")


class Choice(NamedTuple):
    """A backend of torch.distributed and a device as torch.device takes it."""

    backend: str
    device: str


def choose(local_rank: int, local_world_size: int, gpus: int, device: str = "auto") -> Choice:
    """Backend and device of one rank on a machine with `gpus` GPUs.

    Only the ranks of this machine count: eight ranks on two machines need four GPUs each.
    Two nccl ranks on one GPU deadlock or fail, so that nccl needs a GPU for every rank.

    "auto"        nccl, one GPU a rank; gloo on the CPU where there are fewer GPUs than ranks
    "cpu"         gloo on the CPU
    "cuda"        as "auto", but an error where there are fewer GPUs than ranks
    "shared-gpu"  gloo with CUDA tensors; ranks share GPUs where there are fewer than ranks

    Raises BookError for another name, or where the GPUs do not suffice.
    """
    if device not in DEVICES:
        raise BookError(f'There is no device "{device}". Use one of: {", ".join(DEVICES)}.')
    if device == "cuda" and gpus < local_world_size:
        raise BookError(
            f'device="cuda" gives each rank a GPU of its own: {local_world_size} ranks, '
            f'{gpus} GPUs. Use fewer ranks, or device="auto" (gloo on the CPU).'
        )
    if device == "shared-gpu":
        if gpus == 0:
            raise BookError('device="shared-gpu" needs a GPU, and there is none. Use "auto".')
        return Choice("gloo", f"cuda:{local_rank % gpus}")
    if device == "cpu" or gpus < local_world_size:
        return Choice("gloo", "cpu")
    return Choice("nccl", f"cuda:{local_rank}")


def describe(local_world_size: int, device: str = "auto") -> str:
    """What `init_ranks(device)` will choose on this machine, such as "gloo on cpu"."""
    import torch

    choice = choose(0, local_world_size, torch.cuda.device_count(), device)
    return f"{choice.backend} on {choice.device.partition(':')[0]}"


def compiler() -> dict | None:
    """The C++ compiler that Inductor will call, as {"path", "version"}; None without one."""
    usual = "clang++" if sys.platform == "darwin" else "g++"
    path = shutil.which(os.environ.get("CXX") or usual)
    if path is None:
        return None
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    first_line = answer.stdout.strip().partition("\n")[0]
    return {"path": path, "version": first_line or "does not run"}


def cores() -> int:
    """How many cores this process may use (a container often grants fewer than exist)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def gpus() -> list[str]:
    """Names of all GPUs, then which of them may be used, without the seconds that torch takes."""
    if not shutil.which("nvidia-smi"):
        return []
    done = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    names = [line.partition(": ")[2].partition(" (")[0] for line in done.stdout.splitlines()]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "all")
    return [*names, f"CUDA_VISIBLE_DEVICES={visible}"] if names else []


def machine() -> dict:
    """Facts of this machine as plain data; memory in GiB, rounded to a tenth."""
    import psutil
    import torch

    gpus = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "torch": torch.__version__,
        "compiler": compiler(),
        "cores": cores(),
        "memory": round(psutil.virtual_memory().total / 2**30, 1),
        "gpus": [{"name": g.name, "memory": round(g.total_memory / 2**30, 1)} for g in gpus],
    }
