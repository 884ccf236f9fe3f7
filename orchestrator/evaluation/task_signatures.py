"""What a `task.yaml` may say of the functions that an evaluator calls."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from orchestrator.domain.written_settings import WrittenSettings

NAME = r"^[A-Za-z][A-Za-z0-9_]{0,47}$"
Name = Annotated[str, Field(pattern=NAME)]
"""Of an argument; capitals are possible, since a symbol is called as the field calls it."""
DType = Literal[
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"
]  # fmt: skip
"""Types of the array elements that cross the boundary."""


class ArgumentSpec(WrittenSettings):
    """One argument of a function: a scalar per instance, an array per instance if `ragged`, or symbols."""

    name: Name
    dtype: Literal[DType, "symbol"]
    """`symbol`: the program computes with it, and no value of it exists."""
    ragged: bool = False
    length: Annotated[int | None, Field(ge=1, le=256)] = None
    """Only of `symbol`: a sequence of so many; null: one by itself."""

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        if self.dtype == "symbol" and self.ragged:
            msg = f"`ragged` is true for the symbol {self.name!r}; a sequence of symbols has a `length`"
            raise ValueError(msg)
        if self.dtype != "symbol" and self.length is not None:
            msg = f"`length` is {self.length} for {self.name!r} of {self.dtype}; only a `symbol` has one"
            raise ValueError(msg)
        return self


class ReturnSpec(WrittenSettings):
    """What a function returns: a scalar per instance, an array as long as the ragged argument `like`, or a tree."""

    dtype: Literal[DType, "expression"]
    """`expression`: what was computed from symbols, as a tree."""
    maximum_nodes: Annotated[int | None, Field(ge=1, le=256)] = None
    """Only of `expression`, and needed there: what the tree may count; a unary minus counts none."""
    like: Name | None = None
    finite: bool = True
    """False: infinities and NaN reach the evaluator, which must then judge them itself."""
    minimum: Annotated[float | None, Field(allow_inf_nan=False)] = None
    maximum: Annotated[float | None, Field(allow_inf_nan=False)] = None

    @model_validator(mode="after")
    def _leaves_something(self) -> Self:
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            msg = f"`minimum` is {self.minimum:g} and `maximum` is {self.maximum:g}, which no value meets; swap them"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _is_of_one_kind(self) -> Self:
        if self.dtype != "expression":
            if self.maximum_nodes is not None:
                msg = f"`maximum_nodes` is {self.maximum_nodes} for {self.dtype}; only an `expression` has it"
                raise ValueError(msg)
            return self
        if self.maximum_nodes is None:
            msg = "an `expression` needs `maximum_nodes`, for instance 30"
            raise ValueError(msg)
        others = sorted(self.model_fields_set - {"dtype", "maximum_nodes"})
        if others:
            msg = f"an `expression` has no {' and no '.join(f'`{name}`' for name in others)}; remove it"
            raise ValueError(msg)
        return self


class FunctionSpec(WrittenSettings):
    """A function of the program that the evaluator calls."""

    arguments: Annotated[list[ArgumentSpec], Field(min_length=1, max_length=32)]
    returns: ReturnSpec

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        names = [argument.name for argument in self.arguments]
        if len(set(names)) != len(names):
            msg = f"argument names repeat: {names}; give each its own"
            raise ValueError(msg)
        ragged = [argument.name for argument in self.arguments if argument.ragged]
        if self.returns.like is not None and self.returns.like not in ragged:
            msg = f"`returns.like` is {self.returns.like!r}; it must be one of the ragged arguments {ragged}"
            raise ValueError(msg)
        symbols = [argument for argument in self.arguments if argument.dtype == "symbol"]
        if bool(symbols) != (self.returns.dtype == "expression"):
            msg = (
                f"the arguments have {len(symbols)} of dtype `symbol` and the reply is {self.returns.dtype!r}; a "
                "function of symbols returns an `expression`, and no other function does"
            )
            raise ValueError(msg)
        return self
