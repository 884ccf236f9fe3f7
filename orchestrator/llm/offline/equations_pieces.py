"""Equations as text with as few nodes as factoring out allows. Every operator, input and number counts a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orchestrator.llm.offline.equations_terms import Factor, Term

_ABS_FORMS = {"abs_power", "exp_abs", "log_abs", "ratio_abs"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Part of an expression."""

    text: str
    nodes: int
    is_sum: bool = False
    divides: bool = False
    """Whether it is a divisor in its product."""


@dataclass(slots=True, kw_only=True)
class Writer:
    """Writes equations, and hands out the free constants in their order of appearance."""

    inputs: Sequence[str]
    constants: str
    frees_values: bool = False
    """Whether adjustable values become free constants; else they stand as numbers."""
    used: int = 0

    def summands(self, terms: Sequence[Term]) -> list[Piece]:
        """The parts of the sum: terms, and groups of terms with a common factor."""
        rest, pieces = list(terms), []
        while (common := _best_common(rest)) is not None:
            group = [term for term in rest if _contains(term, common)]
            rest = [term for term in rest if not _contains(term, common)]
            inner = self._joined(self.summands([_without(term, common) for term in group]))
            pieces.append(_product([self.factor(common), inner]))
        pieces += [_product([self._constant(), *(self.factor(factor) for factor in term)]) for term in rest]
        return pieces

    def factor(self, factor: Factor) -> Piece:
        """One factor."""
        name = self.inputs[factor.input]
        size = Piece(text=f"np.abs({name})", nodes=2) if factor.form in _ABS_FORMS else Piece(text=name, nodes=1)
        if factor.form in {"power", "abs_power"}:
            return self._power(factor, size)
        if factor.form.startswith(("log", "ratio")):
            return self._shifted(factor, size)
        return self._scaled(factor, size)

    def _power(self, factor: Factor, size: Piece) -> Piece:
        exponent, divides = factor.values[0], factor.values[0] in {-1, -2, -3}
        if not factor.is_adjustable and abs(exponent) in {0.5, 1}:
            is_root = exponent == 0.5
            text, nodes = (f"np.sqrt({size.text})", size.nodes + 1) if is_root else (size.text, size.nodes)
        else:
            text = f"{size.text}**{self._value(factor, 0, abs(exponent) if divides else exponent)}"
            nodes = size.nodes + 2
        return Piece(text=text, nodes=nodes, divides=divides)

    def _shifted(self, factor: Factor, size: Piece) -> Piece:
        shift, is_ratio = factor.values[0], factor.form.startswith("ratio")
        if shift or factor.is_adjustable:
            size = Piece(text=self._plus(size.text, factor, 0), nodes=size.nodes + 2, is_sum=is_ratio, divides=is_ratio)
        return size if is_ratio else Piece(text=f"np.log({size.text})", nodes=size.nodes + 1)

    def _scaled(self, factor: Factor, size: Piece) -> Piece:
        scale = factor.values[0]
        text, nodes = size.text, size.nodes
        if factor.form == "exp_square":
            text, nodes = f"{text}**2", nodes + 2
        is_simple = abs(scale) == 1 and factor.form != "wave"
        if is_simple and scale < 0:
            text = f"-({text})" if "**" in text else f"-{text}"
        elif abs(scale) != 1 or self._frees(factor):
            text, nodes = f"{self._value(factor, 0, scale)} * {text}", nodes + 2
        if factor.form == "wave":
            text, nodes = self._plus(text, factor, 1), nodes + 2
        function = {"exp_abs": "exp", "exp_square": "exp", "wave": "sin"}.get(factor.form, factor.form)
        return Piece(text=f"np.{function}({text})", nodes=nodes + 1)

    def _plus(self, text: str, factor: Factor, number: int) -> str:
        value = factor.values[number]
        if value < 0 and not self._frees(factor):
            return f"{text} - {literal(-value)}"
        return f"{text} + {self._value(factor, number, value)}"

    def _value(self, factor: Factor, number: int, value: float) -> str:  # noqa: ARG002 - says which value it is
        return self._constant().text if self._frees(factor) else literal(value)

    def _frees(self, factor: Factor) -> bool:
        return self.frees_values and factor.is_adjustable

    def _constant(self) -> Piece:
        self.used += 1
        return Piece(text=f"{self.constants}[{self.used - 1}]", nodes=1)

    def _joined(self, pieces: Sequence[Piece]) -> Piece:
        if len(pieces) == 1:
            return pieces[0]
        nodes = sum(piece.nodes for piece in pieces) + len(pieces) - 1
        return Piece(text=" + ".join(piece.text for piece in pieces), nodes=nodes, is_sum=True)


def literal(value: float) -> str:
    """A number as a program has it."""
    return str(int(value)) if value == int(value) and abs(value) < 1e6 else repr(float(value))


def _product(pieces: Sequence[Piece]) -> Piece:
    above = [_bracketed(piece) for piece in pieces if not piece.divides] or ["1"]
    below = [_bracketed(piece) for piece in pieces if piece.divides]
    nodes = sum(piece.nodes for piece in pieces) + len(pieces) - 1
    return Piece(text=" / ".join([" * ".join(above), *below]), nodes=nodes)


def _bracketed(piece: Piece) -> str:
    return f"({piece.text})" if piece.is_sum else piece.text


def _contains(term: Term, factor: Factor) -> bool:
    return _holder(term, factor) is not None


def _holder(term: Term, factor: Factor) -> Factor | None:
    """The factor of a term that another one can be divided out of."""

    def holds(own: Factor) -> bool:
        are_powers = own.form == factor.form == "power" and own.input == factor.input
        exponents = (own.values[0], factor.values[0])
        is_part = are_powers and all(e == int(e) for e in exponents) and 0 < exponents[1] < exponents[0]
        return own == factor or is_part

    return next((own for own in term if holds(own)), None)


def _without(term: Term, factor: Factor) -> Term:
    holder = _holder(term, factor)
    others = list(term)
    if holder is not None:
        others.remove(holder)
        if holder != factor:
            left = holder.values[0] - factor.values[0]
            others.append(Factor(form="power", input=factor.input, values=(left,)))
    return tuple(others)


def _best_common(terms: Sequence[Term]) -> Factor | None:
    """The factor whose factoring out saves most nodes; None: no factor of two terms saves any."""
    size = _sizes(terms)
    best: Factor | None = None
    most = 0
    for factor in sorted({factor for term in terms for factor in term}):
        group = [term for term in terms if _contains(term, factor)]
        if len(group) > 1:
            saved = sum(size(term) - size(_without(term, factor)) for term in group) - 1 - size((factor,)) + 2
            if saved > most:
                best, most = factor, saved
    return best


def _sizes(terms: Sequence[Term]) -> Callable[[Term], int]:
    """A function for the nodes of a term with its coefficient."""
    writer = Writer(inputs=[""] * (1 + max((f.input for term in terms for f in term), default=0)), constants="")
    return lambda term: 1 + sum(1 + writer.factor(factor).nodes for factor in term)
