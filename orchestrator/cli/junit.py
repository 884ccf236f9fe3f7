"""A verdict as a JUnit report, for continuous integration."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from orchestrator.cli.documents import VerdictDocument
from orchestrator.cli.terminal import inert, visible
from orchestrator.cli.verdicts import failure_text
from orchestrator.errors import EvolvariumError


def junit_report(document: VerdictDocument, metric: str) -> str:
    """One suite with one case: passed, or failed with the reason; what the program printed is not in it."""
    seconds = f"{document.outcome.wall_seconds:.3f}"
    counts = {"tests": "1", "failures": "0" if document.passed else "1", "errors": "0", "skipped": "0"}
    suite = ET.Element("testsuite", {"name": f"evolvarium.{document.task}", **counts, "time": seconds})
    case = ET.SubElement(
        suite,
        "testcase",
        {"classname": document.task, "name": f"{_text(document.program)} on {document.split}", "time": seconds},
    )
    properties = ET.SubElement(case, "properties")
    for name, value in (document.metrics or {}).items():
        ET.SubElement(properties, "property", {"name": name, "value": repr(value)})
    if document.failure is not None:
        reason = _text(failure_text(document.failure, document.outcome.detail) or "")
        ET.SubElement(case, "failure", {"type": document.failure.ending, "message": reason})
    elif not document.passed and document.metrics is not None:
        reason = f"{metric} {document.metrics[metric]!r} is worse than the threshold {document.threshold!r}"
        ET.SubElement(case, "failure", {"type": "threshold", "message": reason})
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=False) + "\n"


def junit_error(task: str, program: str, split: str, error: EvolvariumError) -> str:
    """One suite with one case that could not be judged: the sandbox, the evaluator or this machine failed."""
    counts = {"tests": "1", "failures": "0", "errors": "1", "skipped": "0"}
    suite = ET.Element("testsuite", {"name": f"evolvarium.{task}", **counts})
    case = ET.SubElement(suite, "testcase", {"classname": task, "name": f"{_text(program)} on {split}"})
    ET.SubElement(case, "error", {"type": type(error).__name__, "message": _text(str(error))})
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=False) + "\n"


def _text(text: str) -> str:
    """Without characters that XML cannot hold and lines that a CI system would obey."""
    return inert(visible(text))
