"""EvoSQL (Zhou et al.): a generator and a critic evolve a question's SQL over rounds, with an episodic memory.

`elicit` makes the first round, which all methods share; `solve` is EvoSQL, `self_evolve` its counterpart without a
critic; `majority_answer` and `best_of_k` are the other baselines; `accounting` tells where the tokens went.
"""

from orchestrator.methods.evosql.baselines import best_of_k, majority_answer
from orchestrator.methods.evosql.candidates import Candidate, Critique, Execution, Issue
from orchestrator.methods.evosql.events import Event, Progress
from orchestrator.methods.evosql.evolution import EVOSQL, SELF_EVOLUTION, elicit, self_evolve, solve
from orchestrator.methods.evosql.explanation import explain
from orchestrator.methods.evosql.ports import QuestionPorts
from orchestrator.methods.evosql.questions import QuestionView
from orchestrator.methods.evosql.settings import Settings
from orchestrator.methods.evosql.solutions import Choice, Ending, FirstRound, Round, Solution

__all__ = [
    "EVOSQL",
    "SELF_EVOLUTION",
    "Candidate",
    "Choice",
    "Critique",
    "Ending",
    "Event",
    "Execution",
    "FirstRound",
    "Issue",
    "Progress",
    "QuestionPorts",
    "QuestionView",
    "Round",
    "Settings",
    "Solution",
    "best_of_k",
    "elicit",
    "explain",
    "majority_answer",
    "self_evolve",
    "solve",
]
