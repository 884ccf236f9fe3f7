"""What `evolvarium sql ask` says against its own answers, in processes of its own, with real containers."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from orchestrator.cli.sql_documents import SqlAnswerDocument
from orchestrator.sandbox.images import ImageStore
from orchestrator.sql.demo import Demo, write_demo
from tests.command_line import CommandLine

pytestmark = pytest.mark.docker

PAGE = (Path(__file__).parents[2] / "docs" / "text-to-sql.md").read_text()
EXAMPLES = [
    line.removeprefix("evolvarium ")
    for line in PAGE.split("\n## Ask\n")[1].split("```")[1].splitlines()
    if line.startswith("evolvarium sql ask ")
]
SMALL = ("--candidates", "3", "--rounds", "2", "--seed", "1")


@pytest.fixture(scope="module")
def command(home: Path, images: ImageStore, tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    images.verify()
    return CommandLine.beside(home, tmp_path_factory.mktemp("installation"))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    return write_demo(tmp_path_factory.mktemp("demo") / "shop")


def test_a_question_about_a_hidden_column_is_answered_with_a_word_on_it_that_no_model_sees(
    command: CommandLine, demo: Demo
) -> None:
    ask = ("sql", "ask", "What is the e-mail of the customers in Oslo who blorp?", "--db", str(demo.database), *SMALL)
    ended = command.call(*ask, "--policy", "web_shop", "--explain")
    assert ended.code == 0, ended.err
    assert ended.out.startswith("Policy web_shop keeps back what the question calls 'e-mail': customers.email")
    assert "(data rule 1, redact *.email" in ended.out.splitlines()[0]
    assert "Words of the question that the model passed over: 'e-mail', 'blorp'." in ended.out
    assert "\nDoubtful: the policy keeps back what the question calls 'e-mail'; " in ended.out
    assert "with confidence" not in ended.out
    document = SqlAnswerDocument.model_validate_json(command.call(*ask, "--policy", "web_shop", "--json").out)
    assert [one.words for one in document.withheld] == ["e-mail"]
    assert ("customers", "email") in {(one.table, one.column) for one in document.withheld[0].columns}
    assert document.unplaced == ["e-mail", "blorp"]
    assert not document.confident
    assert "email" not in document.sql.lower()
    plain = [part.replace("e-mail", "email") for part in ask]
    open_to_all = SqlAnswerDocument.model_validate_json(command.call(*plain, "--json").out)
    assert (open_to_all.withheld, open_to_all.unplaced) == ([], ["blorp"])


def test_an_answer_that_passes_over_what_was_asked_for_is_doubtful_however_sure_the_critic_is(
    command: CommandLine, demo: Demo
) -> None:
    ask = ("sql", "ask", "How many employees do we have?", "--db", str(demo.database), "--policy", "web_shop", *SMALL)
    ended = command.call(*ask)
    assert ended.code == 0, ended.err
    assert "\nDoubtful: the query may have nothing to do with 'employees'" in ended.out
    assert "Words of the question that the model passed over: 'employees'." in ended.out
    assert "with confidence" not in ended.out
    assert "round 0" not in ended.err  # no terminal waits for it
    document = SqlAnswerDocument.model_validate_json(command.call(*ask, "--json").out)
    assert (document.confident, document.unplaced, document.withheld) == (False, ["employees"], [])
    assert document.confidence >= document.threshold
    question = "How many customers live in Oslo?"  # 'live' asks for nothing that the query could have left out
    placed = command.call("sql", "ask", question, *ask[3:])
    assert "passed over: 'live'." in placed.out
    assert "Doubtful" not in placed.out


def test_a_doubtful_answer_and_a_misspelt_rule_are_said(command: CommandLine, demo: Demo, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "policies" / "web_shop.yaml").read_text()
    policy = tmp_path / "own.yaml"
    policy.write_text(text.replace('      - "*.email"', '      - "customer.phone"\n      - "*.email"'))
    ask = ("sql", "ask", "Qwzx blorp fnord?", "--db", str(demo.database), "--policy", str(policy), *SMALL)
    ended = command.call(*ask)
    assert "`redact customer.phone` names nothing in database 'web_shop'" in ended.err
    doubt = "Doubtful: the query may have nothing to do with 'Qwzx', 'blorp', 'fnord'; the critic gives it "
    assert doubt in ended.out
    document = SqlAnswerDocument.model_validate_json(command.call(*ask, "--json").out)
    assert not document.confident
    assert document.confidence < 8


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_examples_of_the_page_are_answered_with_rows_and_without_doubt(
    command: CommandLine, demo: Demo, example: str
) -> None:
    line = shlex.split(example.replace("demo_shop/web_shop.sqlite", str(demo.database)))
    ended = command.call(*line, "--json")
    assert ended.code == 0, ended.err
    document = SqlAnswerDocument.model_validate_json(ended.out)
    assert document.rows
    assert document.confident
