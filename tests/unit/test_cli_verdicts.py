"""Verdicts as operators read them."""

from __future__ import annotations

import pytest

from orchestrator.cli.verdicts import failure_document, failure_text
from orchestrator.domain.outcomes import Ending
from orchestrator.domain.verdicts import Failure

DETAIL = "wanted more than 512 MiB of memory (memory_bytes)"


@pytest.mark.parametrize("ending", [Ending.TIMEOUT, Ending.MEMORY, Ending.PROCESSES, Ending.OUTPUT_LIMIT])
def test_an_ending_by_a_limit_says_which_one_and_its_value(ending: Ending) -> None:
    assert failure_text(failure_document(Failure(ending=ending)), DETAIL) == f"{ending.value}: {DETAIL}"


def test_an_ending_of_the_programs_own_says_where_and_nothing_of_limits() -> None:
    failure = Failure(ending=Ending.ERROR, exception="ValueError", file="program.py", line=3)
    detail = "reported by its runner, with no limit met"
    assert failure_text(failure_document(failure), detail) == "error, ValueError, program.py:3"


def test_a_verdict_with_a_score_has_no_failure() -> None:
    assert failure_text(failure_document(None), "") is None
