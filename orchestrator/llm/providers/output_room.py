"""How the output of a request is shared between thoughts and the answer, where both count towards one limit.

Who asks for so many tokens means the answer. A budget for thoughts (`thinking` of Anthropic's protocol) comes on top
where model and context have room for it, and is lowered where they have not; with too little it is no use at all.
"""

from __future__ import annotations

from dataclasses import replace

from orchestrator.llm.providers.bodies import most_output
from orchestrator.llm.providers.capabilities import LEAST_THINKING_TOKENS, THINKING, Capabilities

_ANSWER_SHARE = 2
"""What is asked for, or what there is of it, divided by this is what thoughts have to leave."""


def shared_output(capabilities: Capabilities, asked: int, input_tokens: int) -> tuple[int, Capabilities]:
    """The most output of one reply, and what its server takes with the thoughts that fit into it.

    Reservations and requests both come from here, so that none is without the other.

    Args:
        capabilities: Of the server.
        asked: Tokens, from 1.
        input_tokens: Of the conversation, on the high side.

    Returns:
        Tokens, thoughts included, from 1; and the capabilities with the budget for thoughts of this one request, or
        without thoughts where none fits.
    """
    budget = capabilities.thinking_tokens
    if budget is None or not capabilities.accepts(THINKING):
        return most_output(capabilities, asked, input_tokens), capabilities
    wanted = asked if asked - budget >= asked // _ANSWER_SHARE else asked + budget
    most = most_output(capabilities, wanted, input_tokens)
    sent = min(most, capabilities.max_output_tokens or most)  # less than is reserved where no limit may be sent
    fitting = min(budget, sent - max(1, min(asked, sent) // _ANSWER_SHARE))
    if fitting < min(budget, LEAST_THINKING_TOKENS):
        return most_output(capabilities, asked, input_tokens), capabilities.without(THINKING)
    return most, replace(capabilities, thinking_tokens=fitting)
