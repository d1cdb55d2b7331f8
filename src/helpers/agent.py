"""torchrun, whose ranks are forked from it: a program of its own, with torchrun's arguments.

`import torch` takes seconds of a processor, in every process. torchrun itself has imported torch
when it starts its ranks, so a fork saves them that. All else is torchrun's: its rendezvous, the
environment of the ranks, their logs, how a failure is noticed and told. A forked rank differs from
one that `torchrun` starts anew in this: modules of torchrun are imported already, all ranks hash
strings alike, and what torch reads from the environment on import, it has read before.
"""

import contextlib
import gc
import io
import os
import signal
import subprocess
import sys
import time
import types

COMMAND = [sys.executable, "-P", __file__]  # -P: our neighbours are no modules for torch to import
POLL = 0.02  # seconds
CAUGHT_BY_TORCHRUN = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class ForkedRank:
    """What torchrun asks of a `subprocess.Popen` for [python, -u, script, ...]: pid, poll, wait."""

    def __init__(self, args: tuple, env: dict, stdout: io.IOBase, stderr: io.IOBase):
        self.args, self.returncode = args, None
        self.pid = os.fork()
        if self.pid == 0:
            code = 70
            try:
                _become_a_new_process(env, stdout, stderr)
                code = _run(args[2:])
            finally:
                os._exit(code)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.args, timeout)
            time.sleep(POLL)
        return self.returncode


def _become_a_new_process(env: dict, stdout: io.IOBase, stderr: io.IOBase) -> None:
    """Let go of what is torchrun's: session, signals, files and sockets, environment."""
    os.setsid()
    for name in CAUGHT_BY_TORCHRUN:
        signal.signal(name, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(stdout.fileno(), 1)
    os.dup2(stderr.fileno(), 2)
    for file in map(int, os.listdir("/proc/self/fd")):
        if file > 2:
            with contextlib.suppress(OSError):  # that of the listing itself
                os.close(file)
    sys.stdout, sys.stderr = _unbuffered(1, "strict"), _unbuffered(2, "backslashreplace")
    os.environ.update(env)
    if torch := sys.modules.get("torch"):
        torch.default_generator.seed()  # each process that imports torch draws a seed of its own


def _unbuffered(file: int, errors: str) -> io.TextIOWrapper:
    raw = io.FileIO(file, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors=errors, write_through=True)


def _run(argv: list[str]) -> int:
    """Run a script as `python script arguments` does; return its exit code."""
    script = argv[0]
    main = types.ModuleType("__main__")
    main.__file__, main.__builtins__ = script, __builtins__
    sys.modules["__main__"], sys.argv = main, list(argv)
    sys.path.insert(0, os.path.dirname(script))
    try:
        with open(script, "rb") as file:
            code = compile(file.read(), script, "exec")
        exec(code, main.__dict__)
    except SystemExit as error:
        if isinstance(error.code, int):
            return error.code
        if error.code is not None:
            print(error.code, file=sys.stderr)
        return error.code is not None
    except BaseException as error:
        trace = error.__traceback__.tb_next  # without our own frame
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        return 1
    return 0


def main() -> int:
    """Run torchrun; return its exit code."""
    gc.disable()  # importing makes no garbage to speak of, and looking for it takes time
    from torch.distributed import run
    from torch.distributed.elastic.multiprocessing.subprocess_handler import SubprocessHandler

    gc.enable()
    gc.freeze()  # else the first collection in a rank would copy every page that torch fills

    def popen(self, args: tuple, env: dict) -> ForkedRank:
        return ForkedRank(args, env, self._stdout, self._stderr)

    # On macOS a fork of a process that has loaded torch can crash.
    if sys.platform == "linux" and hasattr(SubprocessHandler, "_popen"):
        SubprocessHandler._popen = popen
    try:
        run.main()
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush(), sys.stderr.flush()
    os._exit(code)  # taking torch down would take another second
