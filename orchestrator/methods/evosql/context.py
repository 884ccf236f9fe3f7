"""What everything that works on one question shares."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.methods.evosql.events import Event, Progress
from orchestrator.methods.evosql.ports import QuestionPorts
from orchestrator.methods.evosql.questions import QuestionView
from orchestrator.methods.evosql.settings import Settings
from orchestrator.search.replay import Steps


@dataclass(frozen=True, kw_only=True)
class QuestionContext:
    """One question, the text of its database's schema, and everything around it."""

    question: QuestionView
    schema: str
    """`sql/schema_text.py` in the style `examples`."""
    settings: Settings
    ports: QuestionPorts
    steps: Steps

    def tell(self, event: Event, method: str, number: int) -> None:
        """Report an event."""
        self.ports.on_event(Progress(event=event, question=self.question.id, method=method, round=number))


def open_context(
    question: QuestionView, schema_text: str, *, settings: Settings, ports: QuestionPorts
) -> QuestionContext:
    """Gather what belongs to a question."""
    steps = Steps(ports.journal, ports.mode)
    return QuestionContext(question=question, schema=schema_text, settings=settings, ports=ports, steps=steps)
