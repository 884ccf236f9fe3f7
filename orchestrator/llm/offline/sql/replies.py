"""From a request of EvoSQL to the engine's reply."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.domain.conversation import Conversation, Sampling, UserMessage
from orchestrator.llm.offline.sql import critic, generator
from orchestrator.llm.offline.sql.pool import pool_of
from orchestrator.llm.offline.sql.reading import read
from orchestrator.llm.offline.sql.request import Request, read_request, task_of

DEFAULT_TEMPERATURE = 1.0
_MAX_SCORES = 10


def is_sql_request(conversation: Conversation) -> bool:
    """Whether the first user message is a request of EvoSQL."""
    return task_of(_first_text(conversation)) is not None


def respond_sql(conversation: Conversation, sampling: Sampling) -> str:
    """The reply to a request of EvoSQL: a pure function of its text, the seed and the temperature.

    A request that cannot be understood gets a reply that says so.
    """
    request = read_request(_first_text(conversation))
    if request is None:
        return "The message has none of the titles I know."
    schema, question = request.section("Schema"), request.section("Question").strip()
    if not schema.strip() or not question:
        return "The request has no schema or no question, so there is nothing I can do."
    if request.task in {"judge", "choose"}:
        return _json_block(_judged(request) if request.task == "judge" else _chosen(request))
    return _written(request, sampling)


def _first_text(conversation: Conversation) -> str:
    first = conversation.messages[0] if conversation.messages else None
    return first.text if isinstance(first, UserMessage) else ""


def _parts(request: Request) -> tuple[str, str, str]:
    return request.section("Schema"), request.section("Question").strip(), request.section("Hint").strip()


def _written(request: Request, sampling: Sampling) -> str:
    temperature = DEFAULT_TEMPERATURE if sampling.temperature is None else sampling.temperature
    pool = pool_of(*_parts(request))
    if not pool:
        return "I found no table in the schema from which a query could be built."
    if request.task == "write":
        sql = generator.write(pool, sampling.seed, temperature)
        return _sql_block("I linked the question's words to the schema and drew one way to put them together.", sql)
    sql, repairs = generator.improve(
        pool,
        read(*_parts(request)),
        critic.read_candidates(request.section("Candidates")),
        request.section("Summary") if request.task == "improve" else "",
        seed=sampling.seed,
        temperature=temperature,
    )
    wanted = " ".join(str(demand) for demand in repairs[:3])
    reason = (
        f"I looked for a query that does this: {wanted}" if wanted else "I saw nothing to repair and drew again nearby."
    )
    return _sql_block(reason, sql)


def _judged(request: Request) -> dict[str, Any]:
    names = _score_names(request.section("Scores"))
    return critic.judge(read(*_parts(request)), request.section("Candidates"), request.section("Summary"), names)


def _chosen(request: Request) -> dict[str, Any]:
    index, reason = critic.choose(read(*_parts(request)), request.section("Candidates"))
    return {"choice": index, "reason": reason}


def _score_names(text: str) -> list[str]:
    try:
        names: Any = json.loads(text)
    except (ValueError, RecursionError):
        return ["score"]
    if not isinstance(names, list):
        return ["score"]
    return [name for name in names[:_MAX_SCORES] if isinstance(name, str)] or ["score"]


def _sql_block(reason: str, sql: str) -> str:
    return f"{_plain(reason)}\n\n```sql\n{sql}\n```"


def _plain(text: str) -> str:
    """Text that opens no block."""
    return text.replace("`", "'").replace("\n", " ")


def _json_block(answer: dict[str, Any]) -> str:
    return f"```json\n{json.dumps(answer, ensure_ascii=False).replace('`', chr(92) + 'u0060')}\n```"
