"""Any other program: vary its numbers and operators, token by token.

Programs may come from other models, so they are never parsed into a tree or compiled here: tokenising takes linear time
and cannot overflow a stack.
"""

from __future__ import annotations

import io
import json
import keyword
import random
import tokenize
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.llm.offline.families import Step, commit, rewrite_script, write
from orchestrator.llm.offline.notebook import Notebook

_MAX_CHARACTERS = 50_000
_ATTEMPTS = 4
_ONLY = "program.py"
_NUMBERS_WEIGHT = 4.0
_SWAPS = {
    "+": ("-", "*"),
    "-": ("+", "*"),
    "*": ("/", "+"),
    "/": ("*", "-"),
    "<": ("<=", ">"),
    ">": (">=", "<"),
    "<=": ("<", ">="),
    ">=": (">", "<="),
}
_LOAD_CHECK = """\
\"\"\"Whether the program at hand can be loaded at all, before a commit is spent on it.\"\"\"

import {module}

SETTINGS = {settings}
names = sorted(name for name, value in vars({module}).items() if callable(value) and not name.startswith("_"))
print("it defines " + ", ".join(names))
print('result: {{"loads": 1}}')
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A token that may be replaced."""

    start: int
    end: int
    text: str


class VariationFamily:
    """Takes every task; the one to fall back on."""

    def recognises(self, notebook: Notebook) -> bool:  # noqa: ARG002 - it takes all
        """Always."""
        return True

    def next_step(self, notebook: Notebook, chance: random.Random) -> Step:
        """Vary the best program known; with analyses, see that it loads before committing it."""
        last = notebook.analyses[-1] if notebook.analyses else None
        if last is not None and last.tree == notebook.tree and last.ending == "ok" and last.result() is not None:
            return Step(text="It loads. I commit it.", calls=(commit(f"Variation: {last.setting('changes')}"),))
        best = notebook.trees.get(notebook.best_id or "", {})
        base = best if notebook.entry in best else {notebook.entry: "", **notebook.tree}
        known = [*notebook.trees.values(), *(analysis.tree for analysis in notebook.analyses)]
        tree, changes = vary_tree(base, notebook.entry, chance, known=known)
        text = f"I vary the best program known: {changes}."
        # The base is restored before it is changed, so that the run records what the program was made from.
        restored = [write(file, content) for file, content in base.items() if content != notebook.files.get(file)]
        varied = [write(file, content) for file, content in tree.items() if content != base[file]]
        writes = (*restored, *varied)
        if not notebook.can_analyse or len(notebook.analyses) >= _ATTEMPTS:
            return Step(text=text, calls=(*writes, commit(f"Variation: {changes}")))
        script = _LOAD_CHECK.format(
            module=notebook.entry.removesuffix(".py").replace("/", "."), settings=json.dumps({"changes": changes})
        )
        return Step(text=text, calls=(*writes, *rewrite_script(notebook, script), ("run_analysis", {})))

    def figures(self, notebook: Notebook) -> dict[str, Any]:  # noqa: ARG002 - it keeps none
        """Nothing: the archive says it all."""
        return {}


def vary(program: str, chance: random.Random, *, known: Collection[str]) -> tuple[str, str]:
    """A program of one module, varied as by `vary_tree`."""
    tree, changes = vary_tree({_ONLY: program}, _ONLY, chance, known=[{_ONLY: text} for text in known])
    return tree[_ONLY], changes


def vary_tree(
    tree: Mapping[str, str], entry: str, chance: random.Random, *, known: Collection[Mapping[str, str]]
) -> tuple[dict[str, str], str]:
    """A program with one to three tokens replaced in any of its modules, and what was replaced, in words.

    A program without a token to replace, or whose variations are all known, comes back with a comment added to its
    entry module.

    Args:
        tree: Text by file; only Python modules are varied.
        entry: One of them.
        chance: All randomness.
        known: Programs that are of no use any more.
    """
    places = [(file, place) for file, text in tree.items() if file.endswith(".py") for place in replaceable(text)]
    for _ in range(20):
        count = min(len(places), chance.choice((1, 1, 2, 3)))
        chosen = sorted(_sample(places, count, chance), key=lambda found: (found[0], -found[1].start))
        varied, changes = dict(tree), []
        for file, place in chosen:
            new = _replacement(place.text, chance)
            varied[file] = varied[file][: place.start] + new + varied[file][place.end :]
            where = f" in {file}" if len(tree) > 1 else ""
            changes.append(f"{place.text} becomes {new}{where}")
        if chosen and varied != tree and varied not in known:
            return varied, ", ".join(reversed(changes))
    comment = f"{tree[entry].rstrip()}\n\n# variation {chance.getrandbits(32):08x}\n"
    return {**tree, entry: comment}, "nothing but a comment"


def _sample(places: list[tuple[str, Place]], count: int, chance: random.Random) -> list[tuple[str, Place]]:
    """Different places, numbers more often than operators, most of which hold a program together.

    Weighted sampling without replacement (Efraimidis & Spirakis 2006).
    """
    weights = [1.0 if place.text in _SWAPS else _NUMBERS_WEIGHT for _, place in places]
    keys = [chance.random() ** (1 / weight) for weight in weights]
    return [places[position] for position in sorted(range(len(places)), key=lambda at: -keys[at])[:count]]


def replaceable(program: str) -> list[Place]:
    """Numbers and binary operators; empty if the text is over 50,000 characters or cannot be tokenised."""
    if len(program) > _MAX_CHARACTERS:
        return []
    starts = [0]
    for line in program.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    places: list[Place] = []
    before = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(program).readline):
            is_binary = token.type == tokenize.OP and token.string in _SWAPS and _ends_operand(before)
            if (token.type == tokenize.NUMBER and _is_decimal(token.string)) or is_binary:
                start, end = (starts[row - 1] + column for row, column in (token.start, token.end))
                places.append(Place(start=start, end=end, text=token.string))
            if token.type not in {tokenize.NL, tokenize.COMMENT}:
                before = token.string
    except (tokenize.TokenError, SyntaxError):
        return []
    return [place for place in places if program[place.start : place.end] == place.text]


def _ends_operand(text: str) -> bool:
    return bool(text) and not keyword.iskeyword(text) and (text[-1].isalnum() or text[-1] in "_)]")


def _is_decimal(text: str) -> bool:
    return len(text) <= 24 and all(character in "0123456789.e+-" for character in text)


def _replacement(text: str, chance: random.Random) -> str:
    if text in _SWAPS:
        return chance.choice(_SWAPS[text])
    if text.isdigit():
        value = int(text)
        return str(max(0, value + chance.choice((-1, 1)) * max(1, round(abs(chance.gauss(0, 0.2)) * value))))
    value_ = float(text)
    return f"{value_ * chance.lognormvariate(0, 0.3) if value_ else chance.lognormvariate(-1, 1):.6g}"
