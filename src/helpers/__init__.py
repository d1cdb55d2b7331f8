"""How the lessons of this book run. What the book teaches lives in its chapters.

Names are loaded on first use: ranks import this package, and must not pay for a notebook.
"""

import os
from importlib import import_module

# OpenMP reads this when torch is loaded: threads that wait for work shall sleep. Spinning ones
# cost a busy machine most of its time.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_HOME = {
    "BookError": "paths",
    "GraphRecorder": "counting",
    "StorageTracker": "memory",
    "check": "broken",
    "count_collectives": "counting",
    "exercise": "exercises",
    "figures": "figures",
    "measure": "guesses",
    "paired": "timing",
    "predict": "guesses",
    "settle": "claims",
}

__all__ = sorted([*_HOME, "load_ipython_extension"])


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'helpers' has no attribute {name!r}")
    module = import_module(f"helpers.{_HOME[name]}")
    return module if name == _HOME[name] else getattr(module, name)


def load_ipython_extension(ipython) -> None:
    """`%load_ext helpers`: the magics, the recorder of cells and the style of figures."""
    from helpers import broken, figures, magic

    magic.register(ipython)
    broken.register(ipython)
    figures.style()
