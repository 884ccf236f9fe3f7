"""A pytest plugin: a line per probe with id, idea, runtime, and `safe`, `BREACH`, `untested` or `skipped` with why.

Used by `make redteam` (`-p tests.docker.redteam.report`). A probe that is tried in several ways has one line, with the
worst that was seen. What a breach looked like goes to stderr, after the lines.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator

import pytest

Key = tuple[str, str, str]
"""Id, idea and runtime."""
_RANK = {"safe": 0, "skipped": 1, "untested": 2, "BREACH": 3}
_IDEA_WIDTH = 92


class ProbeReport:
    """Keeps the worst that was seen of each probe until its last test has ended."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}
        self._left: Counter[Key] = Counter()
        self._seen: dict[Key, tuple[str, str]] = {}
        self._details: list[str] = []

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Learn which tests belong to which probe."""
        for item in session.items:
            marker = item.get_closest_marker("probe")
            name, idea = marker.args if marker else ("-", item.nodeid)
            callspec = getattr(item, "callspec", None)
            runtime = callspec.params.get("runtime") if callspec else None
            self._keys[item.nodeid] = str(name), str(idea), "-" if runtime is None else str(runtime)
        self._left.update(self._keys.values())

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep what could not even be collected."""
        if report.failed:
            self._details.append(f"\n{report.nodeid} cannot be collected\n{report.longreprtext}\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take one phase of one test."""
        key = self._keys[report.nodeid]
        verdict = _verdict(report)
        self._seen[key] = max(self._seen.get(key, ("safe", "")), verdict, key=lambda one: _RANK[one[0]])
        if report.failed:
            self._details.append(f"\n{report.nodeid} ({report.when})\n{report.longreprtext}\n")
        if report.when == "teardown":
            self._left[key] -= 1
            if not self._left[key]:
                self._print(key)

    def pytest_report_teststatus(self, report: pytest.CollectReport | pytest.TestReport) -> tuple[str, str, str]:
        """Keep pytest's own progress marks away."""
        return report.outcome, "", ""

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Iterator[None]:
        """Say what was seen, once everything else has been printed."""
        yield
        sys.stderr.writelines(self._details)

    def _print(self, key: Key) -> None:
        (name, idea, runtime), (verdict, reason) = key, self._seen[key]
        if name == "-" and verdict == "safe":
            return  # a check of the probes themselves
        why = f" ({reason})" if reason else ""
        sys.stdout.write(f"{name:<5} {idea:<{_IDEA_WIDTH}} {runtime:<6} {verdict}{why}\n")
        sys.stdout.flush()


def pytest_configure(config: pytest.Config) -> None:
    """Report this run."""
    config.pluginmanager.register(ProbeReport(), "probe-report")


def _verdict(report: pytest.TestReport) -> tuple[str, str]:
    if report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        return "skipped", reason.removeprefix("Skipped: ")
    if report.failed:
        lines = report.longreprtext.strip().splitlines() or [""]
        errors = [line[1:].strip() for line in lines if line.startswith("E ")]
        return "BREACH" if report.when == "call" else "untested", (errors or lines[-1:])[0][:160]
    return "safe", ""
