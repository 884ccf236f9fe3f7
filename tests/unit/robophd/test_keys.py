"""Names in the journal: readable, safe and never shared by two ids."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.methods.robophd.keys import AnswerKeys, content_name, journal_name
from orchestrator.storage.journal import check_key

DIGEST = "sha256:0123456789abcdef" + "0" * 48
identities = st.one_of(
    st.text(max_size=100), st.from_regex(r"\A[a-zA-Z0-9_./:-]{1,70}\Z"), st.just(journal_name("an id that is hashed"))
)


@pytest.mark.parametrize(
    ("identity", "name"), [("17", "17"), ("spider/17", "spider:17"), ("bird/a.b-c_d", "bird:a.b-c_d")]
)
def test_a_plain_id_stays_readable(identity: str, name: str) -> None:
    assert journal_name(identity) == name


@pytest.mark.parametrize(
    "identity", ["", "a b", "spider:17", "/17", "Ü", "x-17", "../../etc", "a" * 65, "\ud800", "a\n"]
)
def test_any_other_id_is_hashed(identity: str) -> None:
    assert re.fullmatch(r"x-[0-9a-f]{32}", journal_name(identity))


@given(identities, identities)
def test_different_ids_have_different_names(one: str, other: str) -> None:
    assert (journal_name(one) == journal_name(other)) == (one == other)


@given(identities, identities, identities)
def test_every_key_is_one_the_journal_takes_with_all_that_stands_below_it(one: str, other: str, model: str) -> None:
    for keys in (AnswerKeys(), AnswerKeys(variant=model)):
        for key in (keys.tool(DIGEST, one), keys.hybrid(DIGEST, one), keys.answer(DIGEST, other)):
            check_key(f"{key}/request/0012/12/sent")


def test_keys_are_as_the_architecture_has_them() -> None:
    assert content_name(DIGEST) == "0123456789abcdef"
    keys = AnswerKeys()
    assert keys.tool(DIGEST, "shop") == "tool/0123456789abcdef/shop"
    assert keys.hybrid(DIGEST, "shop") == "hybrid/0123456789abcdef/shop"
    assert keys.answer(DIGEST, "spider/17") == "answer/0123456789abcdef/spider:17"
    varied = AnswerKeys(variant="openai/small")
    assert varied.tool(DIGEST, "shop") == keys.tool(DIGEST, "shop")
    assert varied.hybrid(DIGEST, "shop") == "hybrid:openai:small/0123456789abcdef/shop"
    assert varied.answer(DIGEST, "17") == "answer:openai:small/0123456789abcdef/17"
