"""What a build says on stderr, on a terminal and in a log."""

import io
import time

import pytest

from helpers import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def told(monkeypatch):
    """Text written by a build of one chapter to a stream that waits in its second cell."""

    def of(stream, until):
        one = progress.Progress(1, stream)
        one.chapter("part/one", 4)
        one.note("executing 4 cells (helpers changed)")
        one.cell(1)
        one.cell(2)
        end = time.monotonic() + 60
        while until not in stream.getvalue():
            assert time.monotonic() < end, stream.getvalue()
            time.sleep(0.05)
        one.note("executed after 0:02")
        one.close()
        return stream.getvalue()

    return of


def test_terminal_has_a_bar_whose_elapsed_moves(told):
    text = told(Terminal(), "0:02")
    assert "[#####...............] 1/1 part/one  cell 2/4  0:0" in text
    assert text.endswith("\r\x1b[K[1/1] part/one: executed after 0:02\n")


def test_log_has_plain_lines_also_from_within_a_long_cell(told, monkeypatch):
    monkeypatch.setattr(progress, "LINE_EVERY", 0.1)
    lines = told(io.StringIO(), "cell 2/4").splitlines()
    assert lines[0] == "[1/1] part/one: executing 4 cells (helpers changed)"
    assert lines[1].startswith("part/one  cell 2/4  0:0")
    assert lines[-1] == "[1/1] part/one: executed after 0:02"
    assert "\x1b" not in "".join(lines)
