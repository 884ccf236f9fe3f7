"""What `sql ask` says beside an answer: what is kept back or passed over, and what makes an answer doubtful."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.bootstrap.sql.confidence import is_confident
from orchestrator.bootstrap.sql.withheld import Withheld
from orchestrator.cli.sql_answers import answer_parts, nothing_passed_over
from orchestrator.cli.sql_ask import tell
from orchestrator.cli.sql_documents import HiddenColumn, SqlAnswerDocument, WithheldWords
from orchestrator.cli.sql_summaries import usage_document
from orchestrator.cli.terminal import Terminal
from orchestrator.domain.conversation import Usage
from orchestrator.domain.data_access import Hidden
from orchestrator.methods.evosql import Event, Progress

KEPT_BACK = Withheld(words="email", columns=(Hidden(table="customers", column="email", rule="data rule 1"),))


def columns(*names: str, rule: str = "data rule 1, redact *.email") -> list[HiddenColumn]:
    return [HiddenColumn(table=name.split(".")[0], column=name.split(".")[1], rule=rule) for name in names]


def document(
    *withheld: WithheldWords, unplaced: list[str] | None = None, answered: bool = True, **more: Any
) -> SqlAnswerDocument:
    shown = SqlAnswerDocument(
        question="What is the email of Ann?",
        database="shop",
        digest="sha256:0",
        answered=answered,
        sql="SELECT city FROM customers",
        status="ok" if answered else "error",
        message="" if answered else "no such table: x",
        columns=["city"],
        rows=[["Oslo"]],
        row_count=1,
        truncated=False,
        ending="stable",
        rounds=1,
        candidates=3,
        supporting=3,
        of_best=3,
        confidence=9,
        threshold=8,
        confident=True,
        doubts=[],
        model="offline",
        critic_model="offline",
        seed=0,
        policy="web_shop",
        hidden=4,
        withheld=list(withheld),
        unplaced=unplaced,
        sqlite="3.40.1",
        requests=1,
        usage=usage_document(Usage()),
        explanation=None,
    )
    return SqlAnswerDocument.model_validate({**shown.model_dump(), **more})


def text(shown: SqlAnswerDocument) -> str:
    return "\n".join(part for part in answer_parts(shown) if isinstance(part, str))


def test_what_the_question_names_and_the_policy_keeps_back_is_said_first() -> None:
    one = WithheldWords(words="email", columns=columns("customers.email", "suppliers.email"))
    assert text(document(one)).startswith(
        "Policy web_shop keeps back what the question calls 'email': customers.email, suppliers.email (data rule 1, "
        "redact *.email). No query could read it; if you ask for it, the result is something else.\n\nSELECT city"
    )
    failed = text(document(one, answered=False))
    assert "(data rule 1, redact *.email). No query could read it.\n\nSELECT city" in failed
    assert "keeps back what" not in text(document())


def test_of_many_columns_a_few_are_named_and_of_several_rules_each() -> None:
    many = columns(*(f"t{number}.email" for number in range(7)), rule="data rule 1, deny t*")
    assert "t0.email, t1.email, t2.email, t3.email, t4.email and 2 more (data rule 1, deny t*)" in text(
        document(WithheldWords(words="email", columns=many))
    )
    two = [*columns("a.email"), *columns("b.email", rule="data rule 1, deny b")]
    assert "a.email, b.email (data rule 1, redact *.email; data rule 1, deny b)" in text(
        document(WithheldWords(words="email", columns=two))
    )


def test_words_that_the_model_passed_over_are_always_listed_as_far_as_it_says() -> None:
    shown = text(document(unplaced=["live"]))
    assert "\n\nWords of the question that the model passed over: 'live'.\n\nFound in" in shown
    assert "passed over" not in text(document(unplaced=[])) + text(document(unplaced=None))
    assert nothing_passed_over(document(unplaced=[])) == ["The model passed over no word of the question."]
    assert nothing_passed_over(document(unplaced=["live"])) == nothing_passed_over(document(unplaced=None)) == []


def test_a_doubtful_answer_says_everything_that_speaks_against_it() -> None:
    one = WithheldWords(words="email", columns=columns("customers.email"))
    shown = text(document(one, unplaced=["email", "live", "employees", "blorp"], confident=False))
    doubt = next(line for line in shown.splitlines() if line.startswith("Doubtful: "))
    assert doubt == (
        "Doubtful: the policy keeps back what the question calls 'email'; "
        "the query may have nothing to do with 'employees', 'blorp'."
    )
    low = text(document(confident=False, confidence=4.5, doubts=["no column fits", "no row comes"]))
    assert "\nDoubtful: the critic gives it 4.5 of 10: no column fits; no row comes.\n" in low
    unread = "the critic's replies could not be read (3 of 3 candidates)"
    nobody = text(document(confident=False, confidence=None, doubts=[unread]))
    assert f"\nDoubtful: {unread}.\n" in nobody
    assert "of 10" not in nobody
    assert "Doubtful" not in text(document(unplaced=["live"]))
    assert "Doubtful" not in text(document(one, answered=False, confident=False, confidence=-1))


def test_what_an_answer_took_is_said_at_its_end_where_a_model_was_asked() -> None:
    usage = Usage(input_tokens=900, cached_input_tokens=100, output_tokens=50, usd=Decimal("0.01234"))
    asked = {"critic_model": "openai/x", "requests": 4, "usage": usage_document(usage).model_dump()}
    assert text(document(**asked)).endswith("\nIt took 4 requests, 1050 tokens and 0.0123 US dollars.")
    assert text(document(**asked, sql="")).endswith("0.0123 US dollars.")
    unknown = {**asked, "usage": {**asked["usage"], "usd": None}}
    assert text(document(**unknown)).endswith("1050 tokens and an unknown sum of US dollars.")
    assert "It took" not in text(document(critic_model="offline/effort-0.5"))


@pytest.mark.parametrize(("confident", "ending"), [(True, "agreed with confidence;"), (False, "agreed;")])
def test_the_closing_line_counts_in_words_and_never_contradicts_the_doubt(confident: bool, ending: str) -> None:
    shown = text(document(confident=confident, confidence=9 if confident else 3))
    assert f"Found in 1 round with 3 candidates: the best candidates {ending} 3 of the best 3 give" in shown
    assert "Policy web_shop keeps back 4 columns." in shown
    several = text(document(rounds=2, candidates=1, hidden=1, answered=False, confident=False))
    assert "Looked for in 2 rounds with 1 candidate: " in several
    assert "Policy web_shop keeps back 1 column." in several


@pytest.mark.parametrize(
    ("confidence", "withheld", "unplaced", "confident"),
    [
        (8.0, (), (), True),
        (8.0, (), None, True),
        (8.0, (), ("live", "Placed"), True),
        (7.5, (), (), False),
        (9.5, (), ("live", "employees"), False),
        (10.0, (KEPT_BACK,), (), False),
    ],
)
def test_an_answer_is_confident_only_where_nothing_speaks_against_it(
    confidence: float, withheld: tuple[Withheld, ...], unplaced: tuple[str, ...] | None, confident: bool
) -> None:
    assert is_confident(confidence, 8, withheld=withheld, unplaced=unplaced) is confident


@pytest.mark.parametrize("is_terminal", [True, False])
def test_steps_are_told_on_a_terminal_only(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    tell(Terminal(), Progress(event=Event.PROPOSED, question="ask", method="", round=0))
    assert capsys.readouterr().err == ("round 0: proposed and run\n" if is_terminal else "")


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"replies": {"refusal": 4}}, "4 of 4 replies were refusals."),
        ({"replies": {"text": 1, "thought": 3}}, "3 of 4 replies were thoughts alone."),
        ({"replies": {"unknown-tools": 1}}, "1 of 1 reply called only tools that do not exist."),
        ({"replies": {"text": 4}}, "there was none in what the model said."),
        (
            {"replies": {"too-long": 4}, "too_long": "m: the most is 8192 tokens"},
            "4 of 4 requests were too long; the model's server says: m: the most is 8192 tokens; give `context_tokens`",
        ),
        ({"replies": {}}, "question and schema leave no room for one in the model's context;"),
        ({"replies": {}, "ending": "budget"}, "the budget was spent before the model had given one."),
    ],
)
def test_an_answer_without_a_query_says_why_there_is_none(more: dict[str, Any], why: str) -> None:
    assert f"No candidate held a query: {why}" in text(
        document(answered=False, **{"sql": "", "ending": "rounds", **more})
    )
