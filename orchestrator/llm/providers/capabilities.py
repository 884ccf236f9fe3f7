"""What a model's server takes, as data: a table by provider and name, and what is learned from refusals."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """Of one model at one server. Parameter names are those of the provider's request body."""

    context_tokens: int | None = None
    """None: neither table nor server says."""
    max_output_tokens: int | None = None
    """Likewise."""
    output_field: str = "max_tokens"
    """The parameter that limits the output."""
    other_output_fields: tuple[str, ...] = ()
    """What to try when that one is refused."""
    temperature: bool = True
    seed: bool = False
    samples: int = 1
    """How many replies one call may ask for."""
    cache_marks: bool = False
    """Whether the stable prefix of a request is marked for the provider's cache."""
    stream_usage: bool = True
    """Whether the usage has to be asked for in a stream (`stream_options`), and may be."""
    system_role: str = "system"
    """Role of the message that holds the system prompt, where it is a message."""
    reasoning_field: str | None = None
    """Field of an assistant message that holds its reasoning when it is sent back; None: it is not."""
    refused: frozenset[str] = field(default_factory=frozenset)
    """Parameters that this server has refused, or that the user leaves out."""

    def accepts(self, parameter: str) -> bool:
        """Whether a parameter may be sent."""
        return parameter not in self.refused
