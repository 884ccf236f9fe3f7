"""Tool calls of a model, checked: whatever is malformed becomes an error for the agent and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.domain.conversation import ToolCall, ToolResult, ToolSpec
from orchestrator.errors import InputError


class ToolError(InputError):
    """Something an agent did wrong; the message is for the agent. Never leaves the method."""


def checked_arguments(call: ToolCall, specs: Sequence[ToolSpec]) -> Mapping[str, str]:
    """The arguments of a well-formed call; every argument of our tools is a text.

    Raises:
        ToolError: The tool is unknown, or the arguments are not what its schema asks for.
    """
    spec = next((spec for spec in specs if spec.name == call.name), None)
    if spec is None:
        msg = f"there is no tool {call.name[:80]!r}; the tools are {', '.join(spec.name for spec in specs)}"
        raise ToolError(msg)
    wanted = spec.parameters["properties"]
    if call.arguments is None:
        msg = f"the arguments of {call.name} are no JSON object; it takes {_names(wanted)}"
        raise ToolError(msg)
    missing = [name for name in wanted if name not in call.arguments]
    excess = [str(name)[:80] for name in call.arguments if name not in wanted]
    if missing or excess:
        problem = f"lack {_names(missing)}" if missing else f"have the unknown {_names(excess)}"
        msg = f"the arguments of {call.name} {problem}; it takes {_names(wanted)}"
        raise ToolError(msg)
    arguments: dict[str, str] = {}
    for name in wanted:
        value = call.arguments[name]
        if not isinstance(value, str):
            msg = f"{name!r} of {call.name} must be a string, not {type(value).__name__}"
            raise ToolError(msg)
        arguments[name] = value
    return arguments


def replaced_once(text: str, old: str, new: str, *, file: str) -> str:
    """A file's text with the only occurrence of a passage replaced.

    Args:
        text: Of the file.
        old: The passage.
        new: What takes its place.
        file: Its name, for messages.

    Raises:
        ToolError: The passage is empty, absent, or occurs more than once.
    """
    if not old:
        msg = "old is empty; give a passage of the file, or use write"
        raise ToolError(msg)
    first = text.find(old)
    if first < 0:
        msg = f"old does not occur in {file}; read the file and copy the passage exactly"
        raise ToolError(msg)
    if text.find(old, first + 1) >= 0:  # overlapping occurrences count, they are just as ambiguous
        msg = f"old occurs more than once in {file}; give a longer passage"
        raise ToolError(msg)
    return text[:first] + new + text[first + len(old) :]


def encoded(content: str, *, file: str) -> bytes:
    """What a tool was given for a file, in UTF-8.

    Raises:
        ToolError: It cannot be encoded.
    """
    try:
        return content.encode("utf-8")
    except UnicodeEncodeError as error:
        msg = f"the text for {file} has a character that UTF-8 cannot hold, at position {error.start}"
        raise ToolError(msg) from error


def success(call: ToolCall, text: str) -> ToolResult:
    """The answer to a call."""
    return ToolResult(call_id=call.id, text=text)


def refusal(call: ToolCall, error: ToolError) -> ToolResult:
    """The answer to a call that was wrong."""
    return ToolResult(call_id=call.id, text=f"error: {error}", is_error=True)


def _names(names: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(repr(name) for name in names) or "no arguments"
