import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from torch.utils.file_baton import FileBaton

folder = Path(tempfile.mkdtemp())
BUILD = """
import os, sys
os.open(sys.argv[1], os.O_CREAT | os.O_EXCL)  # as FileBaton.try_acquire does
os.kill(os.getpid(), 9)  # out of memory, or somebody without patience
"""
subprocess.run([sys.executable, "-c", BUILD, folder / "lock"])  # last week's job, while it built


def load_extension(folder):
    """What torch.utils.cpp_extension.load does around its build."""
    baton = FileBaton(str(folder / "lock"))
    if not baton.try_acquire():
        baton.wait()  # another process builds
        return "loaded what the other one built" if (folder / "op.so").exists() else "no op.so"
    try:
        (folder / "op.so").write_text("built")
    finally:
        baton.release()
    return "built"


# This folder is this job's alone, and no rank has started: nobody builds here.
(folder / "lock").unlink(missing_ok=True)
loading = threading.Thread(target=lambda: print(load_extension(folder)), daemon=True)
loading.start()
loading.join(2)
print("still loading" if loading.is_alive() else "done")
