"""An evolution that is like a recorded one: by packages, answers and analyses, without what `final` spent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from orchestrator.bootstrap.estimates.amounts import Amounts, times
from orchestrator.bootstrap.estimates.like import Measured, differences, other, priced, total
from orchestrator.bootstrap.estimates.models import EstimatedModel
from orchestrator.bootstrap.robophd.choices import EvolveChoices
from orchestrator.errors import InputError
from orchestrator.methods.robophd.keys import journal_name
from orchestrator.methods.robophd.settings import Settings

_EVOLVER = re.compile(r"(?P<evolution>it/\d+/evolve)/request/\d+")
_ANSWER = re.compile(r"(?P<answer>answer/[^/]+/(?P<question>[^/]+))/request/\d+")
_HYBRID = re.compile(r"hybrid/[^/]+/(?P<database>[^/]+)/request/\d+")
_END = re.compile(r"it/(?P<number>\d+)/end")
_SCALED = frozenset(
    {"seed", "iterations", "databases_per_contest", "questions_per_database", "elo.*", "schedule.*"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What an evolution does, as far as its seed says before it begins."""

    evolutions: int
    """Iterations that make a package."""
    contest_answers: int
    """Answers in contests."""
    focus_answers: int
    """Answers in Deep Focus, where every round tests a draft and its revision."""
    select_answers: int
    """Answers on the selection databases, if every package has been in a contest."""
    analyses: int
    """Databases that packages are run on, at most."""

    @property
    def answers(self) -> int:
        """All of them."""
        return self.contest_answers + self.focus_answers + self.select_answers


class LikeEvolution:
    """Scales a recorded evolution."""

    def __init__(self, measured: Measured, choices: EvolveChoices, settings: Settings, course: Course) -> None:
        """Reads it.

        Args:
            measured: The recorded evolution.
            choices: Of the one that is estimated.
            settings: Likewise.
            course: Likewise.

        Raises:
            InputError: The recorded one made no package, and this one will.
            RunStateError: Its record is of another version.
        """
        self._measured = measured
        self._choices = choices
        self._settings = settings
        self._course = course
        with measured.read():
            self._before = Settings.model_validate(measured.header["settings"])
            self._choices_before = EvolveChoices.model_validate(measured.header["choices"])
            self._made = course_made(measured, self._before)
            self._final = _final_names(measured.header)
        if course.evolutions and not self._made.evolutions:
            msg = (
                f"run {measured.run_id} has made no package, so it says nothing of the evolver; name a run of two "
                "iterations or more, or leave out --like"
            )
            raise InputError(msg)

    def evolver(self, model: EstimatedModel) -> Amounts:
        """By packages made."""
        ended = self._measured.made
        took = total(
            usage
            for key, usage in self._measured.requests.items()
            if (match := _EVOLVER.fullmatch(key)) and f"{match['evolution']}/end" in ended
        )
        return _times(took, Fraction(self._course.evolutions, max(1, self._made.evolutions)), model)

    def answerer(self, model: EstimatedModel) -> Amounts:
        """By answers asked for: those that were known from earlier contests cost nothing, here as there."""
        return _times(self._answers(), Fraction(self._course.answers, max(1, self._made.answers)), model)

    def hybrid(self, model: EstimatedModel) -> Amounts:
        """By databases that packages are run on."""
        took = total(
            usage
            for key, usage in self._measured.requests.items()
            if (match := _HYBRID.fullmatch(key)) and match["database"] not in self._final
        )
        return _times(took, Fraction(self._course.analyses, max(1, self._made.analyses)), model)

    def facts(self) -> Iterator[str]:
        """What was measured."""
        made = self._made
        yield (
            f"run {self._measured.run_id} made {made.evolutions} packages and {made.answers} answers in contests, Deep "
            "Focus and the selection; what `evolvarium final` took of it is left out"
        )

    def notes(self) -> Iterator[str]:
        """What differs from the recorded evolution and is in no figure."""
        before, now = self._choices_before, self._choices
        yield from other("evolver", before.evolver, now.evolver)
        yield from other("answerer", before.answerer, now.answerer)
        yield from other("data", _data(before), _data(now))
        settings = (one.model_dump(mode="json") for one in (self._before, self._settings))
        yield from differences(*settings, scaled=_SCALED)

    def _answers(self) -> Amounts:
        return total(
            usage
            for key, usage in self._measured.requests.items()
            if (match := _ANSWER.fullmatch(key)) and match["question"] not in self._final
        )


def course_made(measured: Measured, settings: Settings) -> Course:
    """What a recorded evolution has done, of what has ended.

    Args:
        measured: The evolution.
        settings: Its own.
    """
    contests = focus = analyses = 0
    tested: list[tuple[int, int]] = []
    for number, end in sorted(_ends(measured)):
        sizes = sum(map(len, end["questions"].values())), len(end["questions"])
        if f"it/{number:02d}/evolve/end" in measured.made and settings.evolver.deep_focus:
            rounds = tested[-settings.evolver.deep_focus :]
            focus += 2 * sum(questions for questions, _ in rounds)
            analyses += 2 * sum(databases for _, databases in rounds)
        contests += len(end["competitors"]) * sizes[0]
        analyses += len(end["competitors"]) * sizes[1]
        tested.append(sizes)
    selected = [record for key, record in measured.made.items() if key.startswith("select/")]
    return Course(
        evolutions=sum(key.endswith("/evolve/end") for key in measured.made),
        contest_answers=contests,
        focus_answers=focus,
        select_answers=sum(int(record["questions"]) for record in selected),
        analyses=analyses + sum(len(record["analyses"]) for record in selected),
    )


def _ends(measured: Measured) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for key, record in measured.made.items():
        if (match := _END.fullmatch(key)) is not None:
            yield int(match["number"]), record


def _final_names(header: Mapping[str, Any]) -> frozenset[str]:
    """Final databases and their questions, as journal keys name them."""
    databases = set(header["data"]["final"])
    questions = {str(id_) for _, id_, database in header["questions"] if database in databases}
    return frozenset(map(journal_name, databases | questions))


def _times(took: Amounts, factor: Fraction, model: EstimatedModel) -> Amounts:
    return priced(times(took.usage, factor), took.requests * factor, model)


def _data(choices: EvolveChoices) -> str:
    return ", ".join(f"{one.kind.value} {one.root}" for one in choices.datasets)
