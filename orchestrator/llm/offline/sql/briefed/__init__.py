"""The engine as RoboPhD's answerer, verifier and analyst; it knows of a database what it is told, and no more."""

from orchestrator.llm.offline.sql.briefed.analyst import is_analyst_request, respond_analyst
from orchestrator.llm.offline.sql.briefed.answering import is_briefed_request, respond_briefed

__all__ = ["is_analyst_request", "is_briefed_request", "respond_analyst", "respond_briefed"]
