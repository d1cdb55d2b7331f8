"""Slices cells in this process, without torchrun, and runs what comes out."""

import sys
import types
from textwrap import dedent

import pytest

import helpers
from helpers.cells import RecordedCell
from helpers.paths import BookError
from helpers.slicing import Script, slice_cell


def recorded(*sources) -> list[RecordedCell]:
    """Cells 1, 2, ... of these sources; one that has a tag is a pair (source, tag)."""
    pairs = [s if isinstance(s, tuple) else (s, None) for s in sources]
    return [RecordedCell(n, dedent(s), (t,) if t else ()) for n, (s, t) in enumerate(pairs, 1)]


def sliced(body: str, *cells, **options) -> Script:
    return slice_cell(dedent(body), recorded(*cells), **options)


def run(script: Script, pushed: dict | None = None, pulled: dict | None = None) -> dict:
    """Execute a script as a rank would; returns its globals, and fills `pulled`."""
    main, ranks = types.ModuleType("__main__"), types.ModuleType("helpers.ranks")
    ranks.begin = lambda *names: [pushed[name] for name in names]
    ranks.end = lambda scope, *names: [pulled.update({name: scope[name]}) for name in names]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "helpers.ranks", ranks)
        patch.setattr(helpers, "ranks", ranks, raising=False)
        patch.setitem(sys.modules, "__main__", main)
        exec(compile(script.text, "<script>", "exec", dont_inherit=True), main.__dict__)
    return main.__dict__


def value(body: str, *cells, **options):
    """What the body leaves in `r`."""
    return run(sliced(body, *cells, **options))["r"]


def refuses(body: str, *cells, says: str | list[str], **options) -> str:
    """Assert that slicing raises BookError with these words; returns the message."""
    with pytest.raises(BookError) as caught:
        sliced(body, *cells, **options)
    message = str(caught.value)
    for part in [says] if isinstance(says, str) else says:
        assert part in message
    return message
