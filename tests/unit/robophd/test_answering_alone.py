"""Whoever only answers loads nothing that evolves."""

from __future__ import annotations

import subprocess
import sys

ALLOWED = {"answering", "settings", "ports", "events", "questions", "keys"}
PREFIX = "orchestrator.methods."


def test_answering_loads_no_module_of_the_evolution_and_no_other_method() -> None:
    script = "import sys, orchestrator.methods.robophd.answering; print(*sorted(sys.modules), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    loaded = [name.removeprefix(PREFIX) for name in done.stdout.split() if name.startswith(PREFIX)]
    assert "robophd.answering.answers" in loaded
    strange = [name for name in loaded if name != "robophd" and name.split(".")[:1] != ["robophd"]]
    strange += [name for name in loaded if name.startswith("robophd.") and name.split(".")[1] not in ALLOWED]
    assert strange == []
