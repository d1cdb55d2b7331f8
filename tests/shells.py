"""A notebook without a kernel, and a launcher without ranks."""

import io
from contextlib import redirect_stdout

import pytest
from IPython.core.interactiveshell import InteractiveShell

from helpers import magic
from helpers.launch import Job, Result, TorchrunError
from helpers.paths import BookError


class Notebook:
    """An IPython shell with our magics that belongs to no chapter; `names` are its values."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        for variable in ("BOOK_CHAPTER", "JPY_SESSION_NAME"):
            monkeypatch.delenv(variable, raising=False)
        self.shell = InteractiveShell()
        self.names = self.shell.user_ns
        magic.register(self.shell)
        self.recorder = self.shell.torchrun_recorder

    def ran(self, *cells: str, tags: list[str] | None = None) -> str:
        """Run cells that must succeed; returns what they print."""
        with redirect_stdout(io.StringIO()) as out:
            for cell in cells:
                meta = None if tags is None else {"tags": tags}
                self.shell.run_cell(cell, store_history=True, cell_meta=meta).raise_error()
        return out.getvalue()

    def failed(self, cell: str) -> BaseException:
        """Run a cell that must fail; returns its error, one of ours seen to be shown in a line."""
        with redirect_stdout(io.StringIO()) as out:
            result = self.shell.run_cell(cell, store_history=True)
        error = result.error_in_exec or result.error_before_exec
        assert error
        if isinstance(error, BookError):
            assert out.getvalue().rstrip().endswith(f"{type(error).__name__}: {error}")
            assert "Traceback" not in out.getvalue()
        return error

    def refuses(self, cell: str, *says: str) -> None:
        """Run a cell that must raise BookError with these words."""
        error = self.failed(cell)
        assert isinstance(error, BookError), error
        for part in says:
            assert part in str(error)


class Jobs:
    """Takes the place of `launch.run`. `seen` keeps the jobs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.seen: list[Job] = []
        self._kind, self._pulled = None, {}
        monkeypatch.setattr(magic.launch, "run", self._run)

    def end_with(self, kind: str | None = None, **pulled) -> None:
        """From now on jobs fail with an error of this kind, or end well with these values."""
        self._kind, self._pulled = kind, pulled

    def _run(self, job: Job) -> Result:
        self.seen.append(job)
        if self._kind:
            print("rank 1 failed first: ...")
            raise TorchrunError(f"rank 1: {self._kind}: no", self._kind)
        return Result([], self._pulled)
