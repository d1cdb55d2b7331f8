"""The definitions that a distributed cell needs, and those that these need in turn."""

import ast
from collections.abc import Collection, Mapping

from helpers.definitions import NOTEBOOK_ONLY, SETUP, Definition, Meaning, Unfit, is_builtin
from helpers.history import History
from helpers.names import Names
from helpers.paths import BookError

# Only values of these types are compared with what their cell made of them.
_PLAIN = (bool, int, float, complex, str, bytes, type(None), list, tuple, dict, set, frozenset)


class Closure:
    """Collects definitions in `carried`.

    pushed: names that the ranks get as data. namespace: the notebook's values.
    A name in a body of a function means what it means when the function is called: at the end.
    One that is read while a statement runs (a default, a base class, a decorator and all that it
    calls) means what it meant then. So a script repeats history, old versions included.
    """

    def __init__(self, history: History, pushed: Collection[str], namespace: Mapping):
        self.carried: set[Definition] = set()
        self._history, self._pushed, self._namespace = history, pushed, namespace
        self._seen: set[tuple[Definition, int]] = set()
        for definition in history.setup.values():
            self._take(definition, definition.env)

    def need(self, names: Names, who: str) -> None:
        """Collect what `names`, read by `who`, need. Raises BookError for what ranks lack."""
        self._need(names.early | names.late, self._history.env, who)
        self._need_if_possible(names.soft, self._history.env)
        self._need_registered(names)

    def _need(self, names: Collection[str], env: Mapping[str, Meaning], who: str) -> None:
        for name in sorted(names):
            if name in self._pushed:
                continue
            meaning = env.get(name, self._history.env.get(name))
            if isinstance(meaning, Unfit):
                raise BookError(f"`{name}`, which {who} needs, {meaning.why}. {meaning.cure}")
            if meaning is None and not is_builtin(name):
                raise BookError(self._missing(name, who))
            for definition in meaning or ():
                self._take(definition, env)

    def _take(self, definition: Definition, env: Mapping[str, Meaning]) -> None:
        if (definition, id(env)) in self._seen:
            return
        self._seen.add((definition, id(env)))
        self.carried.add(definition)
        self._check_unchanged(definition)
        names, then, who = definition.names, definition.env, _described(definition)
        for name in sorted(names.early & set(self._pushed)):
            if not isinstance(then.get(name), tuple):
                raise BookError(
                    f"{who} reads `{name}` as soon as it is defined, and a pushed name reaches the "
                    f"ranks only after that. Define it in this cell, or make `{name}` a constant."
                )
            for early in then[name]:
                self._take(early, then)
        self._need(names.early, then, who)
        self._need(names.late, env, who)
        self._need_if_possible(names.soft, env)
        self._need_registered(names)

    def _need_registered(self, names: Names) -> None:
        env = self._history.env
        for keys, definition in self._history.registered.values():
            if keys & (names.strings | names.early | names.late):
                self._take(definition, env)
                for name in definition.names.binds:  # with what has changed it since
                    meaning = env.get(name)
                    if isinstance(meaning, tuple) and definition in meaning:
                        self._need([name], env, "this cell")

    def _need_if_possible(self, names: Collection[str], env: Mapping[str, Meaning]) -> None:
        """An annotation that is a string may name anything: nothing happens where it is absent."""
        for name in sorted(names):
            before = set(self.carried), set(self._seen)
            try:
                self._need([name], env, "an annotation")
            except BookError:
                self.carried, self._seen = before

    def _check_unchanged(self, definition: Definition) -> None:
        """A list or dict that the notebook has changed since is data, whatever its cell says."""
        if definition.kind != "constant" or "lambda" in definition.text:
            return
        again = dict(self._namespace)
        for name in definition.names.binds & self._namespace.keys():
            if self._history.env.get(name) != (definition,):
                continue
            try:
                exec(definition.text, again)  # pure by construction: it only makes values
            except Exception:  # of names that have other values by now
                return
            if isinstance(again[name], _PLAIN) and repr(again[name]) != repr(self._namespace[name]):
                raise BookError(
                    f"`{name}` is no longer what cell {definition.cell.number} made it: ranks would "
                    f"get the old value. Add `--push {name}`, or run that cell again."
                )

    def _missing(self, name: str, who: str) -> str:
        if name in NOTEBOOK_ONLY:
            return (
                f"`{name}`, which {who} needs, exists only in a notebook. Print in the ranks, and "
                "`--pull` what you want to show here."
            )
        if self._history.stars:
            return (
                f"`{name}`, which {who} needs, may come from {self._history.stars[-1]}, which does "
                "not say what it brings. Import it by name."
            )
        if name in self._namespace:
            return (
                f"`{name}`, which {who} needs, is data of the notebook. Add `--push {name}` if it is "
                "plain data or tensors, or make it in this cell."
            )
        return (
            f"`{name}`, which {who} needs, is not defined in any cell that has run without error."
        )


def _described(definition: Definition) -> str:
    if definition.kind == SETUP:
        return f"the {SETUP} cell {definition.cell.number}"
    node = ast.parse(definition.text).body[0]
    names = sorted(definition.names.binds)
    what = getattr(node, "name", None) or ", ".join(names) or definition.text.split("\n")[0]
    return f"`{what}` (cell {definition.cell.number})"
