"""The best program against the initial one and against what it was made from; a script shows all others."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from orchestrator.cli.history import RunView, find_candidate
from orchestrator.cli.report_page.markup import Markup, counted, element, joined
from orchestrator.domain.candidates import FileTree
from orchestrator.methods.agentic_evolve.entries import Entry

_MOST_LINES = 400
_MOST_COMPARED = 2000
_KINDS = {"+": "added", "-": "taken", "@": "place"}


def best_diffs(view: RunView) -> Markup:
    """The differences, folded up."""
    best, initial = view.best, view.history.initial
    if best is None or initial is None or best.island is None:
        return element("p", "The best is the initial program.", class_="quiet")
    others = {initial.id: initial}
    others |= {parent: find_candidate(view, parent) for parent in best.candidate.parents[:1]}
    return element("div", *[_difference(other, best) for other in others.values()], class_="without-script")


def _difference(other: Entry, best: Entry) -> Markup:
    lines = [line for path in _paths(other, best) for line in _file(path, other, best)]
    shown = [element("span", line or " ", class_=_KINDS.get(line[:1])) for line in lines[:_MOST_LINES]]
    more = len(lines) - len(shown)
    return element(
        "details",
        element("summary", f"The best, {best.id}, against {other.id}"),
        element("pre", *[joined(line, "\n") for line in shown], class_="diff", tabindex="0"),
        element("p", f"{counted(more, 'more line')} left out here.", class_="quiet") if more else None,
    )


def _paths(other: Entry, best: Entry) -> list[str]:
    return sorted({*other.candidate.payload, *best.candidate.payload})


def _file(path: str, other: Entry, best: Entry) -> Iterator[str]:
    before, after = _lines(path, other.candidate.payload), _lines(path, best.candidate.payload)
    if before == after:
        return iter([f"@@ {path}: unchanged @@"])
    if max(len(before), len(after)) > _MOST_COMPARED:
        return iter([f"@@ {path}: too long to compare here @@"])
    return difflib.unified_diff(before, after, f"{other.id}/{path}", f"{best.id}/{path}", lineterm="")


def _lines(path: str, tree: FileTree) -> list[str]:
    return tree[path].decode(errors="replace").splitlines() if path in tree else []
