"""`python -m helpers`: what the Makefile calls."""

import argparse
import errno
import os
import subprocess
import sys

from helpers import paths
from helpers.paths import BookError

SIZES = ("laptop", "workstation")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit status. Expected faults are plain sentences on stderr."""
    parser = _parser()
    args, rest = parser.parse_known_args(arguments)
    if rest and args.run is not _lab:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    args.rest = rest
    try:
        return args.run(args) or 0
    except BookError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        from helpers.execute import DISK_FULL

        print(f"\n{DISK_FULL}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as interrupt:
        print("\nInterrupted. Finished chapters are kept.", file=sys.stderr)
        return interrupt.args[0] if interrupt.args else 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m helpers", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    build = commands.add_parser("build", help="execute what changed, and make the site")
    build.add_argument("--no-site", dest="site", action="store_false", help="execute only")
    outputs = commands.add_parser("outputs", help="show and accept new reference outputs")
    outputs.add_argument("--accept", action="store_true", help="do not ask")
    for command, run in ((build, _build), (outputs, _outputs)):
        command.add_argument("chapters", nargs="*", help="such as capture/capture_timing")
        command.add_argument("--size", choices=SIZES, help="how much a chapter computes")
        command.add_argument("--device", help="auto, cpu, cuda or shared-gpu")
        command.add_argument("--nproc", type=int, help="ranks of a distributed cell")
        command.set_defaults(run=run)

    check = commands.add_parser("check", help="compare the last run with the references (nbval)")
    check.add_argument("chapters", nargs="*", help="such as capture/capture_timing")
    check.add_argument("--live", action="store_true", help="run the cells again in a real kernel")
    check.set_defaults(run=_check)
    lab = commands.add_parser(
        "lab",
        help="copies to work in, in JupyterLab; its options (--no-browser, --port) pass through",
    )
    lab.set_defaults(run=_lab)
    lint = commands.add_parser("lint", help="ruff over src, tests and the code of the chapters")
    lint.add_argument("--fix", action="store_true", help="format the chapters' cells in place")
    lint.set_defaults(run=_lint)
    return parser


def _parameters(args: argparse.Namespace) -> dict:
    """What was asked for; a chapter's own defaults stand for the rest."""
    given = {name: getattr(args, name) for name in ("device", "nproc", "size")}
    return {name: value for name, value in given.items() if value is not None}


def _build(args: argparse.Namespace) -> None:
    from helpers.build import build

    build(args.chapters, _parameters(args), args.site)


def _outputs(args: argparse.Namespace) -> None:
    from helpers import book, outputs
    from helpers.build import build

    build(args.chapters, _parameters(args), site=False)
    outputs.update(book.chosen(args.chapters), args.accept)


def _check(args: argparse.Namespace) -> int:
    from helpers import book, outputs
    from helpers.execute import kernel_environment
    from helpers.replay_kernel import install_kernels

    chosen = book.chosen(args.chapters)
    install_kernels()
    command = [
        *(sys.executable, "-m", "pytest", "--nbval-lax"),
        *("--nbval-kernel-name", "nblive" if args.live else "nbreplay"),
        *("--nbval-sanitize-with", "tests/nbval_sanitize.cfg"),
        *(str(outputs.REFERENCES / f"{key}.ipynb") for key in chosen),
    ]
    return subprocess.run(command, cwd=paths.ROOT, env=os.environ | kernel_environment()).returncode


def _lab(args: argparse.Namespace) -> None:
    from helpers.lab import lab

    lab(args.rest)


def _lint(args: argparse.Namespace) -> int:
    from helpers.lint import lint

    return lint(args.fix)


if __name__ == "__main__":
    sys.exit(main())
