"""Does the job load, and does it still wait for a process that is alive and builds?"""

import tempfile
import threading
import time
from pathlib import Path

from helpers.exercises import load_program


def check(program_source: str) -> None:
    """Raise AssertionError where loading waits for a dead process, or not for a living one."""
    program = load_program(program_source)
    for name in ("loading", "load_extension", "FileBaton"):
        assert hasattr(program, name), f"keep the name `{name}`"
    assert not program.loading.is_alive(), "it still waits for a process that is dead"
    folder, answers = Path(tempfile.mkdtemp()), []
    other = program.FileBaton(str(folder / "lock"))
    assert other.try_acquire()
    waiting = threading.Thread(target=lambda: answers.append(program.load_extension(folder)))
    waiting.start()
    time.sleep(0.3)
    early = bool(answers)
    (folder / "op.so").write_text("built")
    other.release()
    waiting.join(5)
    assert not early, "it did not wait for another process that was building"
    assert answers == ["loaded what the other one built"], f"then it gave {answers}"
