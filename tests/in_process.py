"""The command line in this process, with a home of a test's own and no engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.cli.main import execute

Call = Callable[..., tuple[int, str, str]]


def without_engine(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command line; gives exit code, stdout and stderr."""
    monkeypatch.setenv("EVOLVARIUM_HOME", str(home))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/engine.sock")

    def run(*arguments: str) -> tuple[int, str, str]:
        code = execute(arguments)
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run
