"""Queries of an answer, each run once and recorded, so that a resumed run shows the model the same results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.sql import QueryStatus
from orchestrator.domain.sql_results import result_bytes
from orchestrator.methods.robophd.answering.context import AnswerContext
from orchestrator.ports import Database
from orchestrator.search.replay import Record
from orchestrator.sql.shown_results import shown_result


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """A query that was run."""

    sql: str
    status: QueryStatus
    rows: int
    """As many as the caps keep."""
    shown: Mapping[str, Any]
    """What models see of the result (`sql.shown_results`)."""
    result: str
    """Digest of the blob with all of it (`domain.sql_results`)."""

    @property
    def gives_rows(self) -> bool:
        """Whether it ran to its end and gave any row at all; a count of 0 is a row."""
        return self.status is QueryStatus.OK and self.rows > 0


def execute(context: AnswerContext, database: Database, sql: str, *, key: str) -> Execution:
    """Run a query, or read what it gave when it was run.

    Args:
        context: Of the process.
        database: In the predicted domain.
        sql: Untrusted.
        key: Of the journal.

    Raises:
        SandboxError: The sandbox failed; nothing is recorded.
        Cancelled: Somebody asked to stop; likewise.
        RunStateError: The journal holds another query, or the result of another database, under this key.
    """
    record = context.steps.once(
        key, lambda: _run(context, database, sql, key), identity={"database": database.digest, "sql": sql}
    )
    return Execution(
        sql=sql,
        status=QueryStatus(record["status"]),
        rows=record["rows"],
        shown=record["shown"],
        result=record["result"],
    )


def _run(context: AnswerContext, database: Database, sql: str, key: str) -> Record:
    context.cancel.check()
    result = database.query(sql, attempt_id=key)
    return {
        "status": result.status.value,
        "rows": len(result.rows),
        "shown": shown_result(result, context.settings.shown_bounds),
        "result": context.steps.journal.put_blob(result_bytes(result)),
    }
