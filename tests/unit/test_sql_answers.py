"""What `sql ask` says beside an answer: what the policy keeps back of the question, and words it passed over."""

from __future__ import annotations

from orchestrator.cli.sql_answers import answer_parts, passed_over
from orchestrator.cli.sql_documents import HiddenColumn, SqlAnswerDocument, WithheldWords
from orchestrator.cli.sql_summaries import usage_document
from orchestrator.domain.conversation import Usage


def columns(*names: str, rule: str = "data rule 1, redact *.email") -> list[HiddenColumn]:
    return [HiddenColumn(table=name.split(".")[0], column=name.split(".")[1], rule=rule) for name in names]


def document(*withheld: WithheldWords, unplaced: list[str] | None = None, answered: bool = True) -> SqlAnswerDocument:
    return SqlAnswerDocument(
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


def test_words_that_the_model_passed_over_are_listed_or_said_to_be_unknown() -> None:
    assert passed_over(document(unplaced=["email", "live"])) == [
        "Words of the question that the model passed over: 'email', 'live'."
    ]
    assert passed_over(document(unplaced=[])) == ["The model passed over no word of the question."]
    assert passed_over(document(unplaced=None)) == []
