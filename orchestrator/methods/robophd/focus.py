"""Deep Focus: a draft is tested on what other packages have answered, and compared with them question by question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from orchestrator.methods.robophd import texts
from orchestrator.methods.robophd.answering import failure_text, read_result
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.methods.robophd.reports import ErrorReport, error_report, success_report
from orchestrator.methods.robophd.scoring import Scored
from orchestrator.ports import Journal
from orchestrator.sql.quoting import json_line
from orchestrator.sql.shown_results import ShownBounds

DRAFT = "draft"


class Reporter:
    """Makes reports of answers, as models may read them. Pure but for the journal it reads results from."""

    def __init__(self, journal: Journal, bounds: ShownBounds, limit: int) -> None:
        """Nothing is read yet.

        Args:
            journal: Of the run.
            bounds: How much of a result is shown.
            limit: How many reports of one kind, or of one package and database, are shown.
        """
        self._journal = journal
        self._bounds = bounds
        self.limit = limit

    def errors(self, scored: Scored, database: str) -> list[ErrorReport]:
        """What was answered wrong on one database, in the order of the questions."""
        questions = scored.sample.get(database, ())
        return [self.error(scored, question) for question in questions if not scored.judged[question.id].is_right]

    def error(self, scored: Scored, question: QuestionView) -> ErrorReport:
        """A report of one wrong answer."""
        found = scored.answers[question.id]
        return error_report(
            question,
            sql=found.sql,
            result=read_result(found, self._journal),
            difference=scored.judged[question.id].difference,
            bounds=self._bounds,
        )

    def focus_message(self, iteration: int, draft: Scored, others: Mapping[str, Scored], kept: str) -> str:
        """The message after a draft's test.

        Args:
            iteration: Whose questions they were.
            draft: The draft on them.
            others: The packages that ran there.
            kept: What the draft in hand is now: empty, or that an earlier version was kept.
        """
        rights = [scored.right for scored in others.values()]
        everybody, somebody = frozenset.intersection(*rights), frozenset.union(*rights)
        wrong = frozenset(draft.judged) - draft.right
        results = {
            "iteration": iteration,
            "questions": draft.total,
            "accuracy": {
                **{name: round(len(scored.right) / scored.total, 4) for name, scored in others.items()},
                DRAFT: round(len(draft.right) / draft.total, 4),
            },
            **({"kept": kept} if kept else {}),
        }
        return texts.deep_focus_message(
            iteration,
            {
                "Results": json_line(results),
                "Unique successes": self._list(draft, draft.right - somebody, self._success),
                "Unique errors": self._list(draft, wrong & everybody, self._error),
                "Consensus errors": self._list(draft, wrong - somebody, self._error),
                "Tool": texts.json_lines(_tool_lines(draft)),
            },
        )

    def _list(
        self, scored: Scored, ids: frozenset[str], document: Callable[[Scored, QuestionView], dict[str, Any]]
    ) -> str:
        found = [question for questions in scored.sample.values() for question in questions if question.id in ids]
        return texts.json_lines(document(scored, question) for question in found[: self.limit])

    def _error(self, scored: Scored, question: QuestionView) -> dict[str, Any]:
        return {"database": question.database, **self.error(scored, question).document}

    def _success(self, scored: Scored, question: QuestionView) -> dict[str, Any]:
        report = success_report(question, sql=scored.answers[question.id].sql)
        return {"database": question.database, **report.document}


def iteration_table(iteration: int, kind: str, scored: Mapping[str, Scored]) -> dict[str, Any]:
    """The last iteration by database: accuracy, errors, tool and size of the analysis of every competitor.

    Args:
        iteration: Which it was.
        kind: Of its round.
        scored: Competitor to its results; at least one.
    """
    databases = next(iter(scored.values())).sample
    return {
        "iteration": iteration,
        "kind": kind,
        "databases": [
            {
                "database": name,
                "questions": len(questions),
                "agents": {agent: _cell(one, name) for agent, one in scored.items()},
            }
            for name, questions in databases.items()
        ],
    }


def _cell(scored: Scored, database: str) -> dict[str, Any]:
    right, total = scored.right_of(database), len(scored.sample[database])
    failure = scored.analyses[database].tool.failure
    return {
        "accuracy": round(right / total, 4),
        "errors": total - right,
        "tool": "ok" if failure is None else failure.value,
        "analysis_tokens": scored.briefings[database].analysis_tokens,
        "over_budget": scored.briefings[database].is_over_budget,
    }


def _tool_lines(scored: Scored) -> Iterator[dict[str, Any]]:
    """Of every database where something was wrong with the analysis."""
    for name, analysis in scored.analyses.items():
        briefing = scored.briefings[name]
        if analysis.tool.failure is not None:
            yield {
                "database": name,
                "failure": analysis.tool.failure.value,
                "detail": failure_text(analysis.tool),
                "instead": analysis.source.value,
            }
        elif briefing.is_over_budget:
            yield {"database": name, "failure": "over-budget", "tokens": briefing.tokens}
