"""Signatures of a `task.yaml`: symbols and expressions, and what goes together."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from orchestrator.evaluation.task_signatures import FunctionSpec

X: dict[str, Any] = {"name": "x", "dtype": "symbol"}
C: dict[str, Any] = {"name": "c", "dtype": "symbol", "length": 10}
K: dict[str, Any] = {"name": "k", "dtype": "int64"}
TREE: dict[str, Any] = {"dtype": "expression", "maximum_nodes": 30}


def test_symbols_and_data_may_be_mixed() -> None:
    spec = FunctionSpec.model_validate({"arguments": [X, K, C], "returns": TREE})
    assert [argument.length for argument in spec.arguments] == [None, None, 10]
    assert spec.returns.maximum_nodes == 30


WRONG: dict[str, tuple[list[dict[str, Any]], dict[str, Any], str]] = {
    "a-ragged-symbol": ([{**X, "ragged": True}], TREE, "`ragged` is true for the symbol 'x'"),
    "a-length-of-numbers": ([X, {**K, "length": 2}], TREE, "`length` is 2 for 'k' of int64; only a `symbol` has one"),
    "no-symbol-to-sequence": ([{**C, "length": 0}], TREE, "greater than or equal to 1"),
    "a-number-of-a-symbol": ([X], {"dtype": "float64"}, "1 of dtype `symbol` and the reply is 'float64'; a function"),
    "an-expression-of-numbers": ([K], TREE, "0 of dtype `symbol` and the reply is 'expression'"),
    "an-expression-without-a-bound": ([X], {"dtype": "expression"}, "an `expression` needs `maximum_nodes`"),
    "an-expression-beyond-any-bound": ([X], {**TREE, "maximum_nodes": 257}, "less than or equal to 256"),
    "an-expression-with-a-range": ([X], {**TREE, "minimum": 0, "finite": False}, "has no `finite` and no `minimum`"),
    "a-bound-of-numbers": ([K], {"dtype": "float64", "maximum_nodes": 3}, "only an `expression` has it"),
    "an-expression-as-an-argument": ([{"name": "e", "dtype": "expression"}], TREE, "Input should be 'bool'"),
    "a-symbol-as-a-reply": ([X], {"dtype": "symbol"}, "Input should be 'bool'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_go_together_is_refused(name: str) -> None:
    arguments, returns, complaint = WRONG[name]
    with pytest.raises(ValidationError) as refused:
        FunctionSpec.model_validate({"arguments": arguments, "returns": returns})
    assert complaint in str(refused.value)
