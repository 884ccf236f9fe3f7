"""Whether an answer counts as confident: where the critic is, and where it could know what speaks against the answer.

The critic judges what the model made of the question. What a policy keeps back from both of them, and words of which
nothing was made, it cannot miss, so of these its confidence says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orchestrator.bootstrap.sql.withheld import Withheld
from orchestrator.methods.evosql import Solution
from orchestrator.search.memory import Evidence

_TYING = frozenset([
    "live", "lives", "lived", "living", "located", "situated", "based", "come", "comes", "came", "coming", "belong",
    "belongs", "belonged", "belonging", "take", "takes", "took", "taken", "taking",
    "placed", "own", "owns", "owned", "go", "goes", "went", "happen", "happens", "happened", "appear", "appears",
    "appeared", "stored", "recorded", "listed", "given", "ever", "altogether", "actually",
])  # fmt: skip
"""They tie together what other words name (customers *live* in a city, orders are *placed*), and say nothing alone."""


def content_words(unplaced: Iterable[str]) -> tuple[str, ...]:
    """Those words that ask for something, so that an answer without them may be an answer to another question.

    Args:
        unplaced: Words that name nothing and shape no query, as they are written.

    Returns:
        In their order.
    """
    return tuple(word for word in unplaced if word.lower() not in _TYING)


def known_confidence(solution: Solution) -> float | None:
    """What the critic gives the answer, 0 to 10; -1: it did not run to its end.

    What an answer counts for that nobody judged says nothing to people who ask.

    Args:
        solution: Of EvoSQL.

    Returns:
        None: the critic's replies on it could not be read, or the budget was spent before it was judged; and no earlier
        candidate that is like it was judged either.
    """
    answer = solution.rounds[-1].assessment.answer
    if answer.evidence is not Evidence.SOUND or answer.content.critique is not None:
        return answer.confidence
    if solution.rounds[answer.round].is_judged:
        return None
    alike = (e for e in solution.entries if e.round < answer.round and answer.outcome == e.outcome)
    return answer.confidence if any(one.content.critique is not None for one in alike) else None


def is_confident(
    confidence: float | None, threshold: float, *, withheld: Sequence[Withheld], unplaced: Sequence[str] | None
) -> bool:
    """Whether nothing that is known speaks against an answer.

    Args:
        confidence: As `known_confidence`.
        threshold: From which confidence on the critic counts as confident, 0 to 10.
        withheld: What the question names and the policy keeps back.
        unplaced: Words of the question that the model made nothing of; None: it does not say.
    """
    if confidence is None:
        return False
    return confidence >= threshold and not withheld and not content_words(unplaced or ())
