"""What the evolver is shown of other packages and of its own draft, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.llm.offline.evolver.messages import fenced_sections, json_value, mapping, mappings, number, words

_MAX_REPORTS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A package in the ranking over all iterations."""

    id: str
    rating: float
    accuracy: float | None
    """None: it has answered nothing."""
    questions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """A package whose files can be read."""

    id: str
    is_competitor: bool
    """It took part in the last contest."""
    files: Mapping[str, int]
    """File to its size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contested:
    """How a package did on one database of the last contest."""

    package: str
    database: str
    questions: int
    accuracy: float
    errors: int
    tool: str
    """`ok`, or how its tool failed."""
    tokens: int
    """Of its analysis; 0: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReport:
    """A question that was answered wrongly, or the answer that was right where all others were wrong."""

    question: str
    evidence: str
    sql: str
    status: str
    """Of the query's run; empty: unknown."""
    message: str
    row_count: int | None
    """None: unknown."""
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run of the draft's tool."""

    database: str
    tool: str
    """The text of the tool that was run."""
    is_ok: bool
    text: str = ""
    tokens: int = 0
    failure: str = ""
    detail: str = ""
    finding_lines: tuple[int, ...] = ()
    """Where the static screen found something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Focus:
    """How a finished draft did on questions that others have answered."""

    accuracy: Mapping[str, float]
    """Package to its share of right answers; the draft's own is under `draft`."""
    unique_successes: tuple[ErrorReport, ...] = ()
    unique_errors: tuple[ErrorReport, ...] = ()
    consensus_errors: tuple[ErrorReport, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    """Database to how the draft's tool failed on it."""
    is_restored: bool = False
    """The last revision was no better, and the draft is the version before it again."""

    @property
    def own(self) -> float | None:
        """The draft's; None: not told."""
        return self.accuracy.get("draft")

    @property
    def best_other(self) -> float | None:
        """The best of the others; None: there is none."""
        return max((value for name, value in self.accuracy.items() if name != "draft"), default=None)


def read_ranking(text: str) -> tuple[Ranked, ...]:
    """In the order given: best first."""
    return tuple(
        Ranked(
            id=words(entry.get("id"), 200),
            rating=number(entry.get("rating")) or 0.0,
            accuracy=number(entry.get("accuracy")),
            questions=int(number(entry.get("questions")) or 0),
        )
        for entry in mappings(json_value(text))
        if words(entry.get("id"))
    )


def read_pool(text: str) -> tuple[Pooled, ...]:
    """Every package, in the order given."""
    return tuple(
        Pooled(
            id=words(entry.get("id"), 200),
            is_competitor=entry.get("is_competitor") is True,
            files={
                words(file.get("file"), 200): int(number(file.get("bytes")) or 0)
                for file in mappings(entry.get("files"))
                if words(file.get("file"))
            },
        )
        for entry in mappings(json_value(text))
        if words(entry.get("id"))
    )


def read_contest(text: str) -> tuple[Contested, ...]:
    """All packages on all databases."""
    found = []
    for place in mappings(mapping(json_value(text)).get("databases")):
        database, questions = words(place.get("database"), 200), int(number(place.get("questions")) or 0)
        for id_, facts in mapping(place.get("agents")).items():
            known = mapping(facts)
            if database and known:
                found.append(
                    Contested(
                        package=id_[:200],
                        database=database,
                        questions=questions,
                        accuracy=number(known.get("accuracy")) or 0.0,
                        errors=int(number(known.get("errors")) or 0),
                        tool=_standing_of(known.get("tool")),
                        tokens=int(number(known.get("analysis_tokens")) or 0),
                    )
                )
    return tuple(found)


def read_reports(value: object) -> tuple[ErrorReport, ...]:
    """Error reports from a JSON list; what has another form is left out."""
    return tuple(map(_report, mappings(value)[:_MAX_REPORTS]))


def read_trial(database: str, tool: str, text: str) -> Trial:
    """The answer to `try_tool`; one that cannot be read counts as a failure."""
    facts = mapping(json_value(text))
    findings = mappings(facts.get("findings"))
    return Trial(
        database=database,
        tool=tool,
        is_ok=facts.get("ok") is True,
        text=words(facts.get("text"), 1 << 20),
        tokens=int(number(facts.get("tokens")) or 0),
        failure=words(facts.get("failure"), 80) or "unreadable",
        detail=words(facts.get("detail")) + " ".join(words(finding.get("message"), 200) for finding in findings[:20]),
        finding_lines=tuple(int(number(finding.get("line")) or 0) for finding in findings[:20]),
    )


def read_focus(text: str) -> Focus:
    """A message on how the draft did; missing parts are empty."""
    parts = fenced_sections(text)
    results = mapping(json_value(parts.get("Results", "")))
    shares = mapping(results.get("accuracy"))
    lists = [
        read_reports(json_value(parts.get(name, "")))
        for name in ("Unique successes", "Unique errors", "Consensus errors")
    ]
    return Focus(
        accuracy={id_[:200]: share for id_, value in shares.items() if (share := number(value)) is not None},
        unique_successes=lists[0],
        unique_errors=lists[1],
        consensus_errors=lists[2],
        failures=_failures(json_value(parts.get("Tool", ""))),
        is_restored=bool(results.get("kept")),
    )


def _report(entry: Mapping[str, Any]) -> ErrorReport:
    result = mapping(entry.get("result"))
    listed = entry.get("difference")
    rows = number(result.get("row_count"))
    return ErrorReport(
        question=words(entry.get("question")),
        evidence=words(entry.get("evidence")),
        sql=words(entry.get("sql"), 20_000),
        status=words(result.get("status"), 80),
        message=words(result.get("error"), 500),
        row_count=None if rows is None else int(rows),
        differences=tuple(words(item, 300) for item in listed[:20]) if isinstance(listed, list) else (),
    )


def _standing_of(value: object) -> str:
    """`ok` or a failure, which may be a word or an object that holds it."""
    return words(value, 80) or words(mapping(value).get("failure"), 80) or ("ok" if value is None else "failed")


def _failures(value: object) -> dict[str, str]:
    """Failures by database, from an object or from a list of objects."""
    listed = {words(entry.get("database"), 200): entry for entry in mappings(value)} or mapping(value)
    return {
        name[:200]: words(entry, 300) or " ".join(words(mapping(entry).get(key), 300) for key in ("failure", "detail"))
        for name, entry in listed.items()
        if name and entry != "ok" and entry is not None
    }
