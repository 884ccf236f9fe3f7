"""Text-to-SQL without a language model: generator, critic and selector for EvoSQL, by linking, grammar and checks."""

from orchestrator.llm.offline.sql.replies import is_sql_request, respond_sql
from orchestrator.llm.offline.sql.unplaced import unplaced_words

__all__ = ["is_sql_request", "respond_sql", "unplaced_words"]
