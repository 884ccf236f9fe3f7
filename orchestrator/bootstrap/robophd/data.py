"""The data of an evolution: several data sets as one, their databases dealt out to what they are for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.bootstrap.robophd.choices import DatasetChoice, EvolveChoices
from orchestrator.bootstrap.sql.choices import BenchChoices
from orchestrator.bootstrap.sql.data import BenchData, load_data
from orchestrator.domain.sql import Question
from orchestrator.errors import InputError
from orchestrator.methods.robophd.questions import DataView, QuestionView
from orchestrator.search.sampling import DatabaseSplit, split_databases
from orchestrator.sql.normalisation import normalise

_LAYOUT_IS_GIVEN_BY = "--{0} on the command line, or `kind: {0}` in a configuration file"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolveData:
    """Everything that is read from the disk."""

    questions: tuple[Question, ...]
    """Of all data sets, in their order, with ids like `spider/17`."""
    paths: Mapping[str, Path]
    """Database to its file."""
    digest: str
    """Over the lists of questions."""
    names: tuple[str, ...]
    """Of the data sets."""
    orphans: tuple[str, ...]
    """What was left out of them, one line each."""

    def split(self, seed: int, shares: tuple[int, int, int]) -> DatabaseSplit:
        """The databases by what they are for.

        Raises:
            InputError: There are too few.
        """
        if len(self.paths) < len(shares):
            msg = (
                f"{len(self.paths)} databases cannot be dealt out to contests, selection and final figures; "
                "give data sets that ask at least 3"
            )
            raise InputError(msg)
        return split_databases(self.paths, seed, shares)

    def of(self, databases: Collection[str]) -> list[Question]:
        """The questions about some databases."""
        return [question for question in self.questions if question.database in databases]


def load_evolve_data(choices: EvolveChoices) -> EvolveData:
    """The data sets that were asked for.

    Raises:
        InputError: Something is missing or malformed, or two data sets have a database of the same name.
    """
    loaded = [load_data(_bench_choices(one), layout_is_given_by=_LAYOUT_IS_GIVEN_BY) for one in choices.datasets]
    names = _names(choices.datasets)
    paths: dict[str, Path] = {}
    for data in loaded:
        for database, path in data.databases.items():
            if database in paths:
                msg = (
                    f"two data sets have a database {database!r} ({paths[database]} and {path}); leave one of them out "
                    "with `databases`"
                )
                raise InputError(msg)
            paths[database] = path
    return EvolveData(
        questions=tuple(q for name, data in zip(names, loaded, strict=True) for q in _questions(name, data)),
        paths=paths,
        digest=_digest(data.dataset.digest for data in loaded),
        names=tuple(names),
        orphans=tuple(line for data in loaded for line in data.dataset.orphans),
    )


def data_view(questions: Iterable[Question], split: DatabaseSplit) -> DataView:
    """What the method is handed: no gold query, and nothing of the databases for the final figures.

    Args:
        questions: Those that can be evaluated, in the order of the data sets.
        split: Of the databases.
    """
    known = list(map(view_of, questions))
    return DataView(evolve=by_database(known, split.evolve), select=by_database(known, split.select))


def by_database(questions: Sequence[QuestionView], databases: Sequence[str]) -> dict[str, tuple[QuestionView, ...]]:
    """The questions about some databases; those that nothing is asked of are left out."""
    found = {name: tuple(question for question in questions if question.database == name) for name in databases}
    return {name: mine for name, mine in found.items() if mine}


def view_of(question: Question) -> QuestionView:
    """A question as the method sees it."""
    return QuestionView(
        id=question.id,
        database=question.database,
        text=question.text,
        evidence=question.evidence,
        group=_group(question.database, question.gold),
    )


def _bench_choices(one: DatasetChoice) -> BenchChoices:
    return BenchChoices(layout=one.kind, root=one.root, question_file=one.questions, databases=one.databases)


def _names(datasets: Sequence[DatasetChoice]) -> list[str]:
    """`spider`, `bird`, and `spider-2` for another one of the same kind."""
    names: list[str] = []
    for one in datasets:
        number = sum(name.partition("-")[0] == one.kind.value for name in names) + 1
        names.append(one.kind.value if number == 1 else f"{one.kind.value}-{number}")
    return names


def _questions(name: str, data: BenchData) -> list[Question]:
    return [replace(question, id=f"{name}/{question.id}") for question in data.questions]


def _group(database: str, gold: str | None) -> str:
    """Opaque, and equal where database and gold query are.

    Whoever has it could test guesses of a gold query, so it reaches no model: records and statistics alone use it.
    """
    text = json.dumps([database, "" if gold is None else normalise(gold)])
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()[:16]


def _digest(digests: Iterable[str]) -> str:
    return "sha256:" + hashlib.sha256("\n".join(digests).encode()).hexdigest()
