"""What the page of `report` is made of: markup, JSON, texts and scales."""

from __future__ import annotations

import hashlib
import json

import pytest

from orchestrator.cli.report_page.markup import element, inert_json, own_code
from orchestrator.cli.report_page.scales import scale
from orchestrator.cli.report_page.texts import TextPool
from tests.report_lab import HOSTILE, Elements, texts_of


def test_hostile_metrics_of_a_label_are_text() -> None:
    made = element("p", HOSTILE, title=HOSTILE, data_id=None, hidden=False, open=True)
    (found,) = Elements(made).found
    assert found[0] == "p"
    assert set(found[1]) == {"title", "open"}
    assert made.count("<") == 2


def test_json_cannot_end_its_element() -> None:
    written = inert_json({"a": "</script><!--&\u2028\u2029"})
    assert written.isascii()
    assert not set("<>&") & set(written)
    assert json.loads(written) == {"a": "</script><!--&\u2028\u2029"}
    with pytest.raises(ValueError, match="must not hold"):
        own_code("script", "'</script>'")


def test_a_long_text_is_cut_with_a_line_that_says_how_much() -> None:
    pool = TextPool(max_bytes=1 << 20)
    number = pool.add("a" * 600 + "b" * 600, most=1000, whole="`evolvarium show R C` prints all of it")
    document = pool.document()
    (text,) = texts_of({"texts": document})
    assert (number, document["cut"]) == (0, 1)
    assert "[200 characters are left out here; `evolvarium show R C` prints all of it]" in text
    assert text.startswith("a" * 600)
    assert text.endswith("b" * 250)


def test_a_full_pool_leaves_texts_out_and_says_so() -> None:
    pool = TextPool(max_bytes=300_000)
    noise = "".join(hashlib.sha256(str(place).encode()).hexdigest() for place in range(6000))
    numbers = [pool.add(f"{noise[place:]}", most=1 << 20, whole="all of it is elsewhere") for place in range(8)]
    document = pool.document()
    texts = list(texts_of({"texts": document}))
    assert document["left_out"] > 0
    assert "characters are left out: the page is full; all of it is elsewhere" in texts[numbers[-1]]
    assert sum(map(len, document["blocks"])) < 300_000 + 300_000, "one more block at most"


@pytest.mark.parametrize("values", [[0.0], [5.0, 5.0], [-1e308, 1e308], [1e-12, 2e-12]], ids=str)
def test_a_scale_holds_all_values_and_has_few_round_numbers(values: list[float]) -> None:
    made = scale(values, 0.0, 100.0)
    assert all(0 <= made.place(value) <= 100 for value in values)
