"""An answer belongs to a package's content and everything it depends on: it is shared by these, and by nothing else."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from orchestrator.errors import RunStateError
from orchestrator.methods.robophd.answering import Answer, answer, brief_on
from orchestrator.methods.robophd.keys import AnswerKeys
from orchestrator.methods.robophd.questions import QuestionView
from orchestrator.storage.journal import check_key
from tests.answering_lab import (
    AnsweringLab,
    ScriptedTools,
    everything,
    long_lab,
    package,
    tool_run,
)


@pytest.mark.parametrize("is_repeatable", [True, False])
def test_an_answer_that_is_needed_again_is_neither_asked_nor_charged_again(is_repeatable: bool) -> None:
    lab = long_lab(is_repeatable=is_repeatable)
    expected = everything(lab)
    bill = lab.ledger.snapshot()
    assert (lab.analyse(), lab.answer()) == expected
    assert lab.ledger.snapshot() == bill
    everything(lab)
    assert lab.answer() == expected[1]
    assert lab.ledger.snapshot() == bill


def test_packages_of_one_content_share_their_answers_and_others_do_not() -> None:
    lab = AnsweringLab()
    lab.answer()
    lab.package = package()
    lab.answer()
    assert len(lab.model.asked) == 2
    lab.package = package(instructions="Other.")
    lab.answer()
    assert len(lab.model.asked) == 4
    assert len(lab.tools.asked) == 2


def test_two_threads_that_need_one_answer_ask_for_it_once() -> None:
    lab = AnsweringLab()
    lab.analyse()
    is_asked, may_go_on = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        is_asked.set()
        assert may_go_on.wait(60)

    lab.model.before = wait
    found: list[Answer] = []
    threads = [threading.Thread(target=lambda: found.append(lab.answer())) for _ in range(2)]
    threads[0].start()
    assert is_asked.wait(60)
    threads[1].start()
    may_go_on.set()
    for thread in threads:
        thread.join(60)
    assert found[0] == found[1]
    assert len(lab.model.asked) == 2
    assert lab.ledger.snapshot().spent.requests == 2


def test_another_model_has_analyses_and_answers_of_its_own_and_the_same_tool_runs() -> None:
    lab = long_lab()
    everything(lab)
    lab.model.name = "other/model"
    lab.keys = AnswerKeys(variant="other/model")
    everything(lab)
    assert len(lab.tools.asked) == 1
    assert len(lab.model.asked) == 12
    heads = {key.split("/")[0] for key in lab.journal.entries}
    assert heads == {"tool", "hybrid", "answer", "hybrid:other:model", "answer:other:model"}


def test_every_key_is_one_the_journal_takes() -> None:
    lab = long_lab(is_repeatable=False)
    lab.keys = AnswerKeys(variant="m" * 300)
    lab.question = QuestionView(id="Ü" * 300, database="shop/people", text="Who?")
    everything(lab)
    for key in lab.journal.entries:
        check_key(key)


@pytest.mark.parametrize(
    "change", ["question", "evidence", "instructions", "analysis", "settings", "seed", "database", "model"]
)
def test_an_answer_to_something_else_is_not_taken_for_it(change: str) -> None:
    lab = AnsweringLab()
    lab.answer()
    lab.begin()
    briefing = brief_on(lab.context, lab.package, lab.database, lab.analyse())
    asked, context = lab.question, lab.context
    match change:
        case "question":
            asked = replace(asked, text="Who lives in Rome?")
        case "evidence":
            asked = replace(asked, evidence="Oslo is a river.")
        case "instructions":
            briefing = brief_on(lab.context, package("Other."), lab.database, lab.analyse())
            lab.journal.entries = {
                key.replace(lab.package.digest[7:23], briefing.package[7:23]): record
                for key, record in lab.journal.entries.items()
            }
        case "analysis":
            lab.tools = ScriptedTools(tool_run("Something else."))
            del lab.journal.entries[lab.keys.tool(lab.package.digest, "shop/people")]
            lab.begin()
            briefing = brief_on(lab.context, lab.package, lab.database, lab.analyse())
        case "settings":
            lab.settings = lab.settings.model_copy(update={"corrections": 5})
        case "seed":
            lab.seed = 8
        case "database":
            lab.database.digest = "sha256:" + "2" * 64
        case _:
            lab.model.name = "other/model"
    lab.begin()
    context = lab.context
    with pytest.raises(RunStateError, match=r"step 'answer/\w+/shop:17' was recorded with request"):
        answer(context, asked, briefing, database=lab.database)
