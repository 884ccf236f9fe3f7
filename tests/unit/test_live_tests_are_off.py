"""Without `--run-live` no test that spends money runs, whatever keys are set, and nothing goes near the network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.limits import live_usd
from tests.live.providers import PROVIDERS

ROOT = Path(__file__).parents[2]
WATCH = """
import socket, sys

EVENTS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto")


def note(event, arguments):
    if event in EVENTS:
        with open(LOG, "a") as log:
            log.write(f"{event}\\n")


sys.addaudithook(note)
with socket.socket() as control:  # shows that the hook sees what it is there for
    control.connect_ex(("127.0.0.1", 9))
"""


def test_every_live_test_is_skipped_and_the_network_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "network.log"
    (tmp_path / "watch_network.py").write_text(f"LOG = {str(log)!r}\n{WATCH}")
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    keys = {provider.key: "sk-live-canary" for provider in PROVIDERS}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "watch_network", "-p", "no:cacheprovider", "tests/live"],
        cwd=ROOT,
        env={**os.environ, **keys, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout
    summary = done.stdout.splitlines()[-1]
    assert "skipped" in summary
    for word in ("passed", "failed", "error", "xpassed"):
        assert word not in summary
    assert "--run-live" in done.stdout
    assert log.read_text().splitlines() == ["socket.connect"], "that of the control alone"


@pytest.mark.parametrize("usd", ["0", "-1", "nan", "inf", "much", ""])
def test_a_limit_that_is_no_amount_is_refused(usd: str) -> None:
    with pytest.raises(pytest.UsageError, match="is no amount of US dollars"):
        live_usd(usd)
