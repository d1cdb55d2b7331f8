"""What a name of the notebook may mean to ranks."""

import builtins
from collections.abc import Mapping
from dataclasses import dataclass

from helpers.cells import RecordedCell
from helpers.names import Names

SETUP = "torchrun-setup"  # the tag of a cell that every rank repeats whole
NOTEBOOK_ONLY = frozenset({"display", "get_ipython"})  # builtins that IPython adds


@dataclass(frozen=True, eq=False)
class Definition:
    """A part of a cell that a script may repeat. Its `text` starts at line `line` of `cell`.

    env: what each name meant when it ran, for the names that it reads while it runs.
    """

    order: int
    cell: RecordedCell
    line: int
    text: str
    kind: str  # "import", "definition", "constant" or SETUP
    names: Names
    env: Mapping[str, "Meaning"]

    @property
    def is_module(self) -> bool:
        """`import torch`, or `import torch.fx`: both bind torch, and neither undoes the other."""
        return self.kind == "import" and self.text.startswith("import ") and " as " not in self.text


@dataclass(frozen=True)
class Unfit:
    """A name that ranks cannot have: the name `why`, and `cure` says what to do."""

    why: str
    cure: str


# Several definitions: one that made the name, and those that changed it, `A.f = g` for example.
Meaning = tuple[Definition, ...] | Unfit


def data(name: str, why: str) -> Unfit:
    """A value that only the notebook's process has."""
    return Unfit(
        why, f"Add `--push {name}` if it is plain data or tensors, or make it in this cell."
    )


def is_builtin(name: str) -> bool:
    """A name that every script has."""
    return name == "__file__" or (hasattr(builtins, name) and name not in NOTEBOOK_ONLY)


def is_known(name: str, env: Mapping[str, Meaning]) -> bool:
    """Ranks can have what `env` says that `name` means."""
    return isinstance(env.get(name), tuple) or (name not in env and is_builtin(name))
