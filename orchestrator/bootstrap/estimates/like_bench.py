"""A bench that is like a recorded one: what each kind of request took, with other questions, candidates and rounds."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from orchestrator.bootstrap.estimates.amounts import Amounts, times
from orchestrator.bootstrap.estimates.like import Measured, differences, other, priced
from orchestrator.bootstrap.estimates.models import EstimatedModel
from orchestrator.bootstrap.sql.choices import BenchChoices
from orchestrator.bootstrap.sql.outcomes import EVOLUTIONS, Method
from orchestrator.domain.conversation import Usage
from orchestrator.domain.model_access import ModelRole
from orchestrator.errors import InputError
from orchestrator.methods.evosql import EVOSQL, SELF_EVOLUTION, Settings

_REQUEST = re.compile(
    r"(?P<question>q/[^/]+)/(?:(?P<elicit>elicit)|(?P<method>[^/]+)/(?:r(?P<round>\d+)/(?P<phase>aggregate|critic)"
    r"|(?P<choose>choose)))/request/\d+"
)
_SCALED = frozenset({"seed", "candidates", "rounds", "critic_last_round"})
_NAMES = {Method.EVOSQL: EVOSQL, Method.SELF_EVOLUTION: SELF_EVOLUTION}
"""What the journal's keys call the methods that make rounds."""
_CRITIC, _CHOICE, _FIRST, _LATER = "critic", "choose", "elicit", "aggregate"


@dataclass(frozen=True, slots=True)
class _Kind:
    """Requests of one purpose."""

    phase: str
    method: str = ""
    round: int = 0

    @property
    def role(self) -> str:
        role = ModelRole.GENERATOR if self.phase in {_FIRST, _LATER} else ModelRole.CRITIC
        return role.value


class LikeBench:
    """Scales a recorded bench."""

    def __init__(self, measured: Measured, choices: BenchChoices, settings: Settings, *, questions: int) -> None:
        """Reads it.

        Args:
            measured: The recorded bench.
            choices: Of the bench that is estimated.
            settings: Likewise.
            questions: How many it has.

        Raises:
            InputError: The recorded bench did not make what is asked for: a method, or later rounds.
            RunStateError: Its record is of another version.
        """
        self._measured = measured
        self._choices = choices
        self._settings = settings
        with measured.read():
            self._before = Settings.model_validate(measured.header["settings"])
            self._choices_before = BenchChoices.model_validate(measured.header["choices"])
        self._require_measured()
        self._questions = Fraction(questions, measured.units)
        self._candidates = Fraction(settings.candidates, self._before.candidates)
        self._took = self._read()

    def expected(self, role: str, model: EstimatedModel) -> Amounts:
        """What this model is expected to take in a role."""
        found = Amounts()
        for kind in self._kinds():
            if kind.role == role and (took := self._of(kind)).requests:
                found += self._scaled(kind, took)
        return priced(found.usage, Fraction(found.requests), model)

    def notes(self) -> Iterator[str]:
        """What differs from the recorded bench and is in no figure."""
        before, now = self._choices_before, self._choices
        yield from other("model", before.model, now.model)
        yield from other("critic's model", before.critic, now.critic)
        yield from other("data set", _data(before), _data(now))
        settings = (one.model_dump(mode="json") for one in (self._before, self._settings))
        yield from differences(*settings, scaled=_SCALED)
        if self._settings.rounds > self._before.rounds:
            yield (
                f"the recorded bench made {self._before.rounds} rounds at most; each of those after them is taken to "
                "be like its last one, so early stopping saves nothing more"
            )

    def _require_measured(self) -> None:
        before, now = self._choices_before, self._choices
        missing = [method.value for method in now.methods if method not in before.methods]
        run = self._measured.run_id
        if missing:
            known = ",".join(method.value for method in before.methods)
            msg = (
                f"run {run} did not measure {', '.join(missing)}, so it says nothing of that; choose from what it did "
                f"with --methods {known}, or leave out --like"
            )
            raise InputError(msg)
        evolves = any(method in EVOLUTIONS for method in now.methods)
        if evolves and self._settings.rounds > 1 and self._before.rounds == 1:
            msg = f"run {run} made 1 round, so it says nothing of later ones; estimate --rounds 1, or leave out --like"
            raise InputError(msg)
        if Method.EVOSQL in now.methods and _judged(self._settings) and not _judged(self._before):
            msg = f"run {run} asked its critic for nothing, so it says nothing of it; name another run"
            raise InputError(msg)

    def _read(self) -> Mapping[_Kind, Amounts]:
        """What each kind took, of the questions that are answered."""
        found: dict[_Kind, Amounts] = defaultdict(Amounts)
        for key, usage in self._measured.requests.items():
            match = _REQUEST.fullmatch(key)
            if match is not None and f"{match['question']}/outcome" in self._measured.made:
                phase = match["elicit"] or match["choose"] or match["phase"]
                kind = _Kind(phase, match["method"] or "", int(match["round"] or 0))
                found[kind] += Amounts(requests=1, usage=replace(usage, usd=None))
        return found

    def _kinds(self) -> Iterator[_Kind]:
        """Everything that is asked for."""
        yield _Kind(_FIRST)
        for method in (one for one in EVOLUTIONS if one in self._choices.methods):
            yield from (_Kind(_LATER, _NAMES[method], number) for number in range(1, self._settings.rounds))
        if Method.EVOSQL in self._choices.methods:
            yield from (_Kind(_CRITIC, EVOSQL, number) for number in range(_judged(self._settings)))
        if Method.BEST_OF_K in self._choices.methods:
            yield _Kind(_CHOICE, EVOSQL)

    def _of(self, kind: _Kind) -> Amounts:
        """What a kind took; a round that was never there is like the last one that was."""
        last = _judged(self._before) if kind.phase == _CRITIC else self._before.rounds
        return self._took.get(replace(kind, round=min(kind.round, last - 1)), Amounts())

    def _scaled(self, kind: _Kind, took: Amounts) -> Amounts:
        """With other questions and candidates; critic and selector are asked as often, and read or write more."""
        if kind.role == ModelRole.GENERATOR.value:
            factor = self._questions * self._candidates
            return Amounts(requests=round(took.requests * factor), usage=times(took.usage, factor))
        output = self._questions * (self._candidates if kind.phase == _CRITIC else 1)
        longer = self._questions * (1 + self._shown(took) * (self._candidates - 1))
        read, written = times(took.usage, longer), times(took.usage, output)
        usage = replace(read, output_tokens=written.output_tokens, reasoning_tokens=written.reasoning_tokens)
        return Amounts(requests=round(took.requests * self._questions), usage=usage)

    def _shown(self, took: Amounts) -> Fraction:
        """Which part of the requests the candidates are: all but what the first round's requests have, too."""
        paid = [_input(usage) for usage in self._first_requests() if _input(usage)]
        size = Fraction(_input(took.usage), took.requests)
        if not paid or not size:
            return Fraction(0)
        return max(Fraction(0), 1 - Fraction(sum(paid), len(paid)) / size)

    def _first_requests(self) -> Sequence[Usage]:
        requests = self._measured.requests.items()
        return [usage for key, usage in requests if (match := _REQUEST.fullmatch(key)) and match["elicit"]]


def _judged(settings: Settings) -> int:
    """Rounds whose candidates the critic sees."""
    return settings.rounds if settings.critic_last_round else settings.rounds - 1


def _input(usage: Usage) -> int:
    return usage.input_tokens + usage.cached_input_tokens + usage.cache_write_tokens


def _data(choices: BenchChoices) -> str:
    return f"{choices.layout.value} {choices.root}"
