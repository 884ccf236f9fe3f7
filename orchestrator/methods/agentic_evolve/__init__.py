"""AgenticEvolve (Peng et al.): each island is a persistent agent that edits, measures and commits one program.

`run_agentic_evolve` runs, resumes and replays; `read_history` and `statistics` tell a run from its journal.
"""

from orchestrator.methods.agentic_evolve.events import Event, Progress
from orchestrator.methods.agentic_evolve.history import History, read_history
from orchestrator.methods.agentic_evolve.island import StopReason
from orchestrator.methods.agentic_evolve.ports import Disclosure, RunPorts
from orchestrator.methods.agentic_evolve.results import RunResult
from orchestrator.methods.agentic_evolve.run import run_agentic_evolve, run_record
from orchestrator.methods.agentic_evolve.settings import Settings

__all__ = [
    "Disclosure",
    "Event",
    "History",
    "Progress",
    "RunPorts",
    "RunResult",
    "Settings",
    "StopReason",
    "read_history",
    "run_agentic_evolve",
    "run_record",
]
