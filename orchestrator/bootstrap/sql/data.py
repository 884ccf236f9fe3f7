"""The data set of a bench: loaded, and cut to what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from orchestrator.bootstrap.sql.choices import BenchChoices, Layout
from orchestrator.domain.sql import Question
from orchestrator.errors import InputError
from orchestrator.methods.evosql import QuestionView
from orchestrator.sql.datasets import Dataset, load_bird, load_jsonl, load_spider


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchData:
    """What is measured."""

    dataset: Dataset
    questions: tuple[Question, ...]
    """Those that were asked for, in the order of the list."""

    @property
    def databases(self) -> dict[str, Path]:
        """Id to file of the databases that these questions ask, in the order in which they come."""
        names = dict.fromkeys(question.database for question in self.questions)
        return {name: self.dataset.databases[name] for name in names}


def load_data(choices: BenchChoices, *, layout_is_given_by: str = "--dataset {}") -> BenchData:
    """The data set, and the questions that were asked for.

    Args:
        choices: What was asked for.
        layout_is_given_by: How another layout would be asked for.

    Raises:
        InputError: Something is missing or malformed, it is laid out otherwise, no question has a gold query, or none
            is left.
    """
    dataset = _load_known(choices, layout_is_given_by)
    if choices.databases is not None:
        _require_known(choices.databases, [*dataset.databases])
    wanted = [q for q in dataset.questions if choices.databases is None or q.database in choices.databases]
    if not wanted:
        msg = f"{choices.root!r} holds no question on {', '.join(choices.databases or ()) or 'any database'}"
        raise InputError(msg)
    return BenchData(dataset=dataset, questions=tuple(spread(wanted, choices.limit)))


def view_of(question: Question) -> QuestionView:
    """A question as methods see it."""
    return QuestionView(id=question.id, text=question.text, evidence=question.evidence)


def spread(questions: Sequence[Question], limit: int | None) -> list[Question]:
    """At most so many questions at even distances, the first among them, so that all of the list is represented."""
    count = len(questions)
    if limit is None or limit >= count:
        return list(questions)
    return [questions[place * count // limit] for place in range(limit)]


def _load_known(choices: BenchChoices, layout_is_given_by: str) -> Dataset:
    """The data set in the layout that was asked for; where it has another one, the error says which."""
    problem: InputError | None = None
    try:
        dataset = _load(choices)
        if any(question.gold is not None for question in dataset.questions):
            return dataset
    except InputError as error:
        problem = error
    for other in Layout:
        if other is not choices.layout and _has_gold(choices.model_copy(update={"layout": other})):
            msg = (
                f"{choices.root!r} is laid out like {other.value}, not like {choices.layout.value}; "
                f"give {layout_is_given_by.format(other.value)}"
            )
            raise InputError(msg) from problem
    if problem is not None:
        raise problem
    msg = (
        f"none of the {len(dataset.questions)} questions in {choices.root!r} has a gold query (read like "
        f"{choices.layout.value}), so nothing can be measured; give a list that has them"
    )
    raise InputError(msg)


def _has_gold(choices: BenchChoices) -> bool:
    """Whether it can be read in this layout, and says what is right."""
    try:
        return any(question.gold is not None for question in _load(choices).questions)
    except InputError:
        return False


def _load(choices: BenchChoices) -> Dataset:
    root = Path(choices.root)
    match choices.layout:
        case Layout.BIRD:
            return load_bird(root, choices.question_file)
        case Layout.SPIDER:
            return load_spider(root, choices.question_file)
        case Layout.JSONL:
            if root.is_dir():
                root = root / (choices.question_file or "questions.jsonl")
            elif choices.question_file is not None:
                msg = (
                    f"{choices.root!r} is a file of questions already, so --questions {choices.question_file!r} has no "
                    "meaning; leave it out, or give the folder with --root"
                )
                raise InputError(msg)
            return load_jsonl(root)


def _require_known(asked: Sequence[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            close = get_close_matches(name, known, n=3) or known[:5]
            msg = f"no question asks a database {name!r}; there are for instance {', '.join(close)}"
            raise InputError(msg)
