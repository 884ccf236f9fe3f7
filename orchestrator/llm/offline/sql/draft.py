"""The state of one derivation: what has been decided, and which mentions are used up."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from orchestrator.llm.offline.sql.choices import Chooser
from orchestrator.llm.offline.sql.linking import Mention
from orchestrator.llm.offline.sql.logic import Condition, Item
from orchestrator.llm.offline.sql.reading import Reading
from orchestrator.llm.offline.sql.schema import Edge, Field
from orchestrator.llm.offline.sql.words import name_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A condition of the question, not yet placed in a query."""

    place: int
    """The token that it comes from."""
    condition: Condition
    negated: bool = False

    @property
    def column(self) -> Field | None:
        """The column it is about; None: a count of rows."""
        columns = self.condition.item.columns
        return columns[0] if columns else None


@dataclass(slots=True)
class Draft:
    """Mutable: one run of the grammar fills it."""

    reading: Reading
    choose: Chooser
    used: set[int] = field(default_factory=set)
    """Numbers of mentions that have a role."""
    spent: set[int] = field(default_factory=set)
    """Tokens that have a role."""
    resolved: dict[int, Field] = field(default_factory=dict)
    filters: list[Filter] = field(default_factory=list)
    counts: list[Filter] = field(default_factory=list)
    """Conditions on numbers of rows."""
    counted: str | None = None
    """The table whose rows are counted."""
    absent: list[tuple[int, str]] = field(default_factory=list)
    """(place, table) of tables without a row for what is asked for."""
    order: list[tuple[Item, bool]] = field(default_factory=list)
    limit: int | None = None
    functions: dict[int, str] = field(default_factory=dict)
    """Aggregates that words at these places stand for, beside those that always do."""
    extreme: Item | None = None
    """An aggregate that a superlative stands for."""
    orders_groups: bool = False
    edges: list[Edge] = field(default_factory=list)

    def column(self, number: int) -> Field:
        """The column a mention means; decided once."""
        if number not in self.resolved:
            reading = self.reading
            mention = reading.mentions[number]
            owner = reading.owners[number]
            tables = {column.table for column in self.resolved.values()}
            targets = [target for target in mention.of("column") if target.column is not None]
            options = [(t.column, 2.0 * t.score + reading.context(t.column, owner)) for t in targets if t.column]
            wider = [0.8 if target.table in tables else 0.0 for target in targets]
            options.extend(self._named_by(mention, owner))
            self.resolved[number] = self.choose.pick(options, wider)
        return self.resolved[number]

    def _named_by(self, mention: Mention, owner: str | None) -> list[tuple[Field, float]]:
        """`colour names` where colours have no name, but a column called `colour`."""
        reading = self.reading
        if owner is None or mention.last - mention.first != 1 or reading.tokens[mention.first].stem != "name":
            return []
        if any(column.likeness_to("name") >= 0.8 for column in reading.schema.tables[owner]):
            return []
        shown = reading.schema.display(owner)[0]
        own = name_words(owner)
        return [(shown, 4.6 + reading.context(shown, owner))] if set(shown.words) <= set(own) else []

    def antecedent(self, place: int) -> str | None:
        """The table that was spoken of last before a place, by its name or by one of its values."""
        before = [m for m in self.reading.mentions if m.last <= place and m.kind in {"table", "value"}]
        return before[-1].targets[0].table if before else None

    def use(self, number: int) -> None:
        """Take a mention for a role."""
        mention = self.reading.mentions[number]
        self.used.add(number)
        self.spent.update(range(mention.first, mention.last))

    def free(self, kind: str, *, strong: bool = False) -> list[int]:
        """Mentions of a kind without a role; `strong` leaves out words that merely resemble a name."""
        return [
            number
            for number, mention in enumerate(self.reading.mentions)
            if number not in self.used and mention.of(kind) and (not strong or mention.of(kind)[0].score >= 1.0)
        ]

    def label(self, mention: Mention) -> str:
        """The region a mention begins in."""
        return self.reading.labels[mention.first]

    def is_negated(self, place: int) -> bool:
        """Whether a word before this place, and in its clause, denies it."""
        reading = self.reading
        for negation in reading.negations:
            if negation >= place or place - negation > 9:
                continue
            between = reading.lows[negation + 1 : place]
            if {"but", ".", "?", ";", ","}.isdisjoint(between) and not ("and" in between and "have" in between):
                return True
        return False

    def add_filter(self, place: int, column: Field, op: str, *literals: str, negated: bool | None = None) -> None:
        """Note a condition on a column."""
        condition = Condition(item=Item(column=column), op=op, literals=literals)
        denied = self.is_negated(place) if negated is None else negated
        self.filters.append(Filter(place=place, condition=condition, negated=denied))


def negate(condition: Condition) -> Condition:
    """The opposite of a comparison."""
    opposite = {
        "=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
        "LIKE": "NOT LIKE", "IN": "NOT IN", "BETWEEN": "NOT BETWEEN",
    }  # fmt: skip
    return replace(condition, op=opposite.get(condition.op, condition.op))
