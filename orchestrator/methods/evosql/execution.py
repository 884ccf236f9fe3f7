"""Runs candidates, each different query once per question, and records what came of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from orchestrator.domain.sql import QueryResult, QueryStatus
from orchestrator.domain.sql_results import result_bytes
from orchestrator.methods.evosql.candidates import Candidate, Execution
from orchestrator.methods.evosql.context import QuestionContext
from orchestrator.methods.evosql.settings import Settings
from orchestrator.search.memory import Evidence
from orchestrator.search.replay import Record
from orchestrator.sql.clusters import cluster_key
from orchestrator.sql.gate import check
from orchestrator.sql.normalisation import normalise
from orchestrator.sql.shown_results import ShownBounds, shown_result

NO_QUERY = "the answer held no query"


def run_candidates(context: QuestionContext, queries: Sequence[str], step: str) -> tuple[Candidate, ...]:
    """Candidates with what running them gave, in their order.

    Of queries that differ only in white space and the case of keywords, the first one that is met is run for all.

    Args:
        context: Of the question.
        queries: As the model wrote them; an empty one is refused without being run.
        step: Names the round in the audit, for instance `r0`.

    Raises:
        SandboxError: The sandbox failed; what was recorded stays.
        Cancelled: Somebody asked to stop; likewise.
        RunStateError: The journal holds results of another database.
    """
    keys = [normalise(sql) if sql else "" for sql in queries]
    distinct: dict[str, str] = {}
    for key, sql in zip(keys, queries, strict=True):
        if key:
            distinct.setdefault(key, sql)
    batch = _Batch(context, distinct, step)
    executions = {key: _execution(batch.record(key), context.settings) for key in distinct}
    return tuple(
        Candidate(sql=sql, key=key, execution=executions[key] if key else _not_run())
        for key, sql in zip(keys, queries, strict=True)
    )


def sql_key(question: str, key: str) -> str:
    """The journal key of one different query of a question, for instance `q/17/sql/0123...`."""
    return f"{question}/sql/{hashlib.sha256(key.encode('utf-8', errors='surrogatepass')).hexdigest()[:32]}"


class _Batch:
    """Runs what is not recorded yet all at once, when the first of it is asked for."""

    def __init__(self, context: QuestionContext, distinct: Mapping[str, str], step: str) -> None:
        self._context = context
        self._distinct = distinct
        self._step = step
        self._results: dict[str, QueryResult] | None = None

    def record(self, key: str) -> Record:
        context = self._context
        return context.steps.once(
            sql_key(context.question.key, key),
            lambda: self._perform(key),
            identity={"database": context.ports.database.digest},
        )

    def _perform(self, key: str) -> Record:
        context = self._context
        if self._results is None:
            context.ports.cancel.check()
            missing = [k for k in self._distinct if context.steps.recorded(sql_key(context.question.key, k)) is None]
            results = context.ports.database.query_all(
                [self._distinct[k] for k in missing], attempt_id=f"{context.question.key}/{self._step}"
            )
            self._results = dict(zip(missing, results, strict=True))
        return _record(self._distinct[key], self._results[key], context)


def _record(sql: str, result: QueryResult, context: QuestionContext) -> Record:
    return {
        "sql": sql,
        "status": result.status.value,
        "rows": len(result.rows),
        "cluster": _cluster(sql, result),
        "shown": shown_result(result, context.settings.shown_bounds),
        "result": context.ports.journal.put_blob(result_bytes(result)),
        "wall_seconds": round(result.wall_seconds, 4),
    }


def _cluster(sql: str, result: QueryResult) -> str:
    if result.is_ok:
        return cluster_key(result, ordered=check(sql).has_top_level_order)
    failure = f"{result.status.value}: {result.message}"  # apart, so that a grouped critic sees each different error
    return "failed:" + hashlib.sha256(failure.encode("utf-8", errors="replace")).hexdigest()[:32]


def _execution(record: Record, settings: Settings) -> Execution:
    status = QueryStatus(record["status"])
    if status is not QueryStatus.OK:
        evidence = Evidence.INVALID
    elif record["rows"] == 0 and settings.empty_is_suspect:
        evidence = Evidence.EMPTY
    else:
        evidence = Evidence.SOUND
    return Execution(
        status=status,
        evidence=evidence,
        cluster=record["cluster"],
        shown=record["shown"],
        result=record["result"],
        wall_seconds=record["wall_seconds"],
    )


def _not_run() -> Execution:
    result = QueryResult(status=QueryStatus.REFUSED, message=NO_QUERY)
    return Execution(
        status=result.status,
        evidence=Evidence.INVALID,
        cluster=_cluster("", result),
        shown=shown_result(result, ShownBounds()),
        result=None,
    )
