"""The package that runs begin with: the statements of the database, and minimal instructions (paper, appendix E)."""

from __future__ import annotations

from importlib.resources import files

from orchestrator.domain.agent_packages import INSTRUCTIONS_FILE, MANIFEST_FILE, TOOL_FOLDER, AgentPackage

NAIVE = "naive"
_FILES = {
    MANIFEST_FILE: "agent.json.txt",
    INSTRUCTIONS_FILE: "eval_instructions.md.txt",
    f"{TOOL_FOLDER}/analyze.py": "analyze.py.txt",
}


def naive_package() -> AgentPackage:
    """It knows nothing of values, keys or sizes; what a run makes of it is the run's own work."""
    stored = files(__package__)
    return AgentPackage.load({path: stored.joinpath(name).read_bytes() for path, name in _FILES.items()})
