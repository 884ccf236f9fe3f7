"""Uses a package: analyses a database with its tool, and answers questions about it by its instructions.

Nothing here evolves anything, so an exported package is used with the same code as in a run. `analyse` comes first,
`brief_on` makes a briefing of it, and `answer` answers one question at a time.
"""

from orchestrator.methods.robophd.answering.analysis import (
    Analysis,
    ToolReport,
    analyse,
    brief_on,
    failure_text,
    run_tool,
)
from orchestrator.methods.robophd.answering.answers import ROLE, answer, read_result
from orchestrator.methods.robophd.answering.attempts import Answer, Attempt, Ending, Phase, Verdict
from orchestrator.methods.robophd.answering.briefing import Briefing, Source, brief, over_budget, text_tokens
from orchestrator.methods.robophd.answering.context import AnswerContext, OncePerProcess
from orchestrator.methods.robophd.answering.hybrid import HYBRID_ROLE

__all__ = [
    "HYBRID_ROLE",
    "ROLE",
    "Analysis",
    "Answer",
    "AnswerContext",
    "Attempt",
    "Briefing",
    "Ending",
    "OncePerProcess",
    "Phase",
    "Source",
    "ToolReport",
    "Verdict",
    "analyse",
    "answer",
    "brief",
    "brief_on",
    "failure_text",
    "over_budget",
    "read_result",
    "run_tool",
    "text_tokens",
]
