"""What the critic answers, read strictly; what cannot be read is named, so that it can be asked for again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.methods.evosql.answers import extract_json
from orchestrator.methods.evosql.candidates import Critique, Issue
from orchestrator.methods.evosql.strict_json import JsonError, clean_text, load_object

MAX_SCORE = 10.0
_MAX_ISSUES = 8
_TEXT_CHARACTERS = 500
_SUMMARY_CHARACTERS = 4000


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticAnswer:
    """As much of an answer as could be read."""

    critiques: Mapping[int, Critique]
    """By the index in the prompt's list."""
    summary: str | None
    """None: there is none that could be read."""
    problems: tuple[str, ...]
    """In our own words; empty: everything that was asked for is there."""

    def completed_by(self, earlier: CriticAnswer) -> CriticAnswer:
        """This answer, with what it lacks from an earlier one."""
        return CriticAnswer(
            critiques={**earlier.critiques, **self.critiques},
            summary=earlier.summary if self.summary is None else self.summary,
            problems=self.problems,
        )


def read_critiques(text: str, *, count: int, score_names: Sequence[str]) -> CriticAnswer:
    """Read an answer about candidates 1 to `count`.

    An evaluation counts if it is the only one of its index and has every score that was asked for, each a number from
    0 to 10; a score outside is not clamped, since it may be of another scale. Texts that are too long are cut.

    Args:
        text: Untrusted.
        count: How many candidates were listed.
        score_names: What was to be scored.
    """
    try:
        document = load_object(extract_json(text))
    except JsonError as error:
        return CriticAnswer(critiques={}, summary=None, problems=(f"the answer cannot be used: {error}",))
    critiques, problems = _evaluations(document.get("evaluations"), count, score_names)
    summary = clean_text(document.get("cumulative_summary"), _SUMMARY_CHARACTERS)
    if summary is None:
        problems.append('"cumulative_summary" is not a text')
    return CriticAnswer(critiques=critiques, summary=summary, problems=tuple(problems))


def _evaluations(value: object, count: int, score_names: Sequence[str]) -> tuple[dict[int, Critique], list[str]]:
    if not isinstance(value, list):
        return {}, ['"evaluations" is not a list']
    found: dict[int, Critique | str] = {}
    indices = [item.get("index") for item in value if isinstance(item, dict)]
    seen = Counter(index for index in indices if isinstance(index, int) and not isinstance(index, bool))
    for item in value:
        index = item.get("index") if isinstance(item, dict) else None
        if not isinstance(index, int) or isinstance(index, bool) or not 1 <= index <= count:
            continue  # about none of the candidates; what is missing is said below
        found[index] = _critique(item, score_names) if seen[index] == 1 else "it is evaluated more than once"
    problems = []
    for index in range(1, count + 1):
        critique = found.get(index, "it is not evaluated")
        if isinstance(critique, str):
            problems.append(f"candidate {index}: {critique}")
    return {index: c for index, c in sorted(found.items()) if not isinstance(c, str)}, problems


def _critique(item: Mapping[str, Any], score_names: Sequence[str]) -> Critique | str:
    """What an evaluation says, or what is wrong with it."""
    scores = item.get("scores")
    if not isinstance(scores, dict):
        return '"scores" is not an object'
    for name in score_names:
        value = scores.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_SCORE:
            return f'score "{name}" is not a number from 0 to 10'
    issues = _issues(item.get("issues", []))
    assessment = clean_text(item.get("execution_assessment", ""), _TEXT_CHARACTERS)
    if issues is None:
        return '"issues" is not a list of objects with the texts "problem" and "repair"'
    if assessment is None:
        return '"execution_assessment" is not a text'
    return Critique(
        scores={name: float(scores[name]) for name in score_names}, issues=issues, execution_assessment=assessment
    )


def _issues(value: object) -> tuple[Issue, ...] | None:
    if not isinstance(value, list):
        return None
    issues: list[Issue] = []
    for item in value:
        if not isinstance(item, dict):
            return None
        problem = clean_text(item.get("problem"), _TEXT_CHARACTERS)
        repair = clean_text(item.get("repair", ""), _TEXT_CHARACTERS)
        if problem is None or repair is None:
            return None
        issues.append(Issue(problem=problem, repair=repair))
    return tuple(issues[:_MAX_ISSUES])
