"""The magics as a notebook uses them: their line, what they hand over, how they fail."""

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from shells import Jobs, Notebook

from helpers import paths
from helpers.launch import TorchrunError


@pytest.fixture
def notebook(monkeypatch):
    return Notebook(monkeypatch)


@pytest.fixture
def jobs(monkeypatch):
    return Jobs(monkeypatch)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--nproc 0", "--nproc 0: the number of ranks is a whole number from 1 to 64"),
        ("--nproc -1", "--nproc -1: the number of ranks is a whole number from 1 to 64"),
        ("--nproc two", "--nproc two: the number of ranks is a whole number from 1 to 64"),
        ("--nproc 10000", "--nproc 10000: at most 64 ranks. Each is a process"),
        ("--nproc", "argument --nproc: expected one argument"),
        ("--nprocs 2", "unrecognized arguments: --nprocs 2"),
        ("--np 2", "unrecognized arguments: --np 2"),
        ("--help", "unrecognized arguments: --help"),
        ("4", "unrecognized arguments: 4"),
        ("--timeout 0", "--timeout 0: give a number of seconds above 0"),
        ("--timeout soon", "--timeout soon: give a number of seconds above 0"),
        ("--push a, b", "with commas and no spaces"),
        ("--push a,a", "different names"),
        ("--pull 1x", "`1x`: write different names"),
        ("--expect 'exit 3'", "name the error (ValueError), a signal"),
        ("--name 'x", "cannot be read"),
    ],
)
def test_a_line_that_is_wrong_says_what_to_write(line, says, notebook, jobs):
    notebook.refuses(f"%%torchrun {line}\n1", says)
    if "arguments" in says:
        notebook.refuses(f"%%torchrun {line}\n1", "Use: %%torchrun --nproc 2 [--timeout 120]")
    assert not jobs.seen


def test_a_line_that_is_right_makes_the_job(notebook, jobs):
    notebook.ran("n = 3\na = b = 1")
    notebook.ran(
        "%%torchrun --nproc {n} --timeout 2.5 --name my-job --push a,b --pull c,d\nc = d = a"
    )
    (job,) = jobs.seen
    assert (job.label, job.chapter, job.nproc, job.timeout) == ("my_job", "notebook", 3, 2.5)
    assert (job.push, job.pull) == ({"a": 1, "b": 1}, ("c", "d"))
    notebook.ran("%%torchrun\nprint(1)")
    job = jobs.seen[-1]
    assert (job.label, job.nproc, job.timeout, job.push, job.pull) == ("cell3", 2, 120, {}, ())


def test_names_that_ranks_cannot_have(notebook, jobs):
    notebook.ran("m = print", "exec('hidden = 1')", "x = len([1]) and input.__doc__ and open")
    notebook.ran("y = input.__doc__.strip()")
    notebook.refuses("%%torchrun\nmissing", "`missing`", "not defined in any cell")
    notebook.refuses("%%torchrun\nhidden", "`hidden`", "--push hidden")
    notebook.refuses(
        "%%torchrun\ny", "`y`", "cell 4, line 1: `y = input.__doc__.strip()`", "--push y"
    )
    notebook.refuses("%%torchrun --push nope\n1", "`--push nope`: the notebook has no `nope`")
    notebook.refuses("%%torchrun --pull r\n1", "`--pull r`: this cell never sets `r`")
    notebook.refuses("%%torchrun\n%ls", "no magics")
    assert not jobs.seen


def test_pulled_names_go_before_the_run_and_come_after_it(notebook, jobs):
    notebook.ran("r = 'old'")
    jobs.end_with("ValueError")
    notebook.failed("%%torchrun --pull r\nr = 1")
    assert "r" not in notebook.names
    notebook.refuses("%%torchrun\nr", "`r`", "was pulled by cell 2", "--push r")
    jobs.end_with(r=[1, 2])
    notebook.ran("%%torchrun --pull r\nr = 1")
    assert notebook.names["r"] == [1, 2]
    notebook.refuses("%%torchrun\nr", "--push r")
    notebook.ran("%%torchrun --push r --pull r\nr = [r]")
    assert jobs.seen[-1].push == {"r": [1, 2]}


def test_a_cell_that_is_refused_leaves_pulled_names_alone(notebook, jobs):
    notebook.ran("r = 'old'")
    notebook.refuses("%%torchrun --pull r\nr = missing", "`missing`")
    assert notebook.names["r"] == "old"


@pytest.mark.parametrize("kind", ["ValueError", "timeout", "SIGABRT", "SIGKILL"])
def test_an_expected_failure_is_shown_and_succeeds(kind, notebook, jobs):
    jobs.end_with(kind)
    out = notebook.ran(f"%%torchrun --expect {kind}\n1")
    assert out == f"rank 1 failed first: ...\nas expected, rank 1: {kind}: no\n"


def test_any_other_ending_than_the_expected_one_fails(notebook, jobs):
    jobs.end_with("KeyError")
    notebook.refuses(
        "%%torchrun --expect ValueError\n1", "expected ValueError, but rank 1: KeyError: no"
    )
    notebook.refuses("%%torchrun\n1", "rank 1: KeyError: no")
    jobs.end_with()
    notebook.refuses(
        "%%torchrun --expect ValueError\n1", "expected ValueError, but every rank ended well"
    )
    assert isinstance(notebook.failed("%%torchrun --expect timeout\n1"), TorchrunError)


def test_the_script_is_shown_on_demand_and_by_its_label(notebook, jobs):
    notebook.ran("K = 1")
    out = notebook.ran("%%torchrun --show --name first\nprint(K)")
    assert out == jobs.seen[0].script.text + "\n"
    assert notebook.ran("%torchrun_script first") == out
    notebook.refuses("%torchrun_script other", "no distributed cell of that name", "first")
    jobs.end_with("ValueError")
    notebook.failed("%%torchrun --name second\nraise ValueError")
    assert "raise ValueError" in notebook.ran("%torchrun_script second")


def test_a_kernel_reports_the_mistake_as_an_error_of_one_line():
    sources = ["%load_ext helpers", "%%torchrun --nproc 0\nprint(1)"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(s) for s in sources])
    client = NotebookClient(notebook, timeout=120, kernel_name="python3")
    with pytest.raises(CellExecutionError, match="BookError: --nproc 0"):
        client.execute()
    (output,) = notebook.cells[1].outputs
    assert (output.output_type, output.ename) == ("error", "BookError")
    assert output.traceback == [f"BookError: {output.evalue}"]


def test_real_ranks_take_definitions_and_data_and_hand_back_results(
    notebook, tmp_path, monkeypatch
):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    notebook.ran(
        "import torch\nfrom helpers.ranks import init_ranks",
        "SCALE = 3\ndef scaled(x):\n    return x * SCALE",
        "x = torch.arange(3.0).clone()",
    )
    out = notebook.ran(
        "%%torchrun --nproc 2 --push x --pull total,note\n"
        "import torch.distributed as dist\n"
        "rank, world_size, device = init_ranks()\n"
        "total = scaled(x.to(device)) + rank\n"
        "dist.all_reduce(total)\n"
        "total = total.cpu()\n"
        'note = f"""rank {rank}\n  of {world_size}"""\n'
        "print(note)\n"
    )
    assert [t.tolist() for t in notebook.names["total"]] == [[1.0, 7.0, 13.0]] * 2
    assert notebook.names["note"] == ["rank 0\n  of 2", "rank 1\n  of 2"]
    assert "$ torchrun --standalone --nproc-per-node 2 _build/cells/notebook/cell4.py" in out
    assert "[rank 1]   of 2\n" in out
    notebook.ran("m = torch.nn.Linear(1, 1)")
    notebook.refuses("%%torchrun --push m\nm", "Cannot push `m`", "Linear is not plain data")


def test_a_real_failure_names_cell_and_line_and_can_be_expected(notebook, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    notebook.ran("import os\n\ndef fail():\n    raise ValueError('for a reason')")
    cell = "\n%%torchrun --expect ValueError --pull r\nr = 1\nif os.environ['RANK'] == '1':\n    fail()"
    out = notebook.ran(cell)
    assert "as expected, rank 1: ValueError: for a reason" in out
    assert "notebook, cell 2, line 5" in out
    assert "notebook, cell 1, line 4, in fail" in out
    assert "r" not in notebook.names
    assert (tmp_path / "cells/notebook/cell2.py").is_file()
    assert not list((tmp_path / "runs").glob("notebook-*"))
