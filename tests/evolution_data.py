"""The demo's collections as data sets of tests, where a test wants it with a canary in everything of gold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from orchestrator.domain.sql import Question
from orchestrator.domain.sql_results import result_from_bytes
from orchestrator.ports import Journal
from orchestrator.sql.datasets.jsonl import write_jsonl
from orchestrator.sql.demo.collections import COLLECTIONS, questions_on, write_collection

CANARY = "canary-5b1e77"
"""Stands in gold queries and in rows of gold results, and nowhere else."""
HIDDEN = "555-"
"""Begins every value of `keepers.phone`."""
NAMES = ("garden", "harbor", "museum")


def write_list(folder: Path, names: tuple[str, ...] = NAMES, *, canary: str = "") -> Path:
    """A list of six questions on each of some collections, beside their files.

    Args:
        folder: Where to; made.
        names: Of the collections.
        canary: Put into every gold query as a comment, and into the rows of one more question's gold result; empty:
            nowhere.

    Returns:
        The list.
    """
    folder.mkdir(parents=True, exist_ok=True)
    questions: list[Question] = []
    for name in names:
        write_collection(folder / f"{name}.sqlite", name)
        questions += _with_canary(name, canary) if canary else questions_on(name)
    path = folder / "questions.jsonl"
    path.write_text(write_jsonl(questions))
    return path


def gold_rows(journal: Journal) -> list[tuple[object, ...]]:
    """The rows of all recorded gold results."""
    digests = [record["result"] for key, record in journal.records("q/") if key.endswith("/gold")]
    return [row for digest in digests if digest for row in result_from_bytes(journal.get_blob(digest)).rows]


def _with_canary(name: str, canary: str) -> list[Question]:
    thing = COLLECTIONS[name]
    asked = [replace(one, gold=f"{one.gold} -- {canary}") for one in questions_on(name)]
    gold = "SELECT name || '$C' FROM $T".replace("$C", canary).replace("$T", thing)
    secret = replace(asked[0], id=f"{name}-{len(asked)}", text=f"What are the secret names of {thing}?", gold=gold)
    return [*asked, secret]
