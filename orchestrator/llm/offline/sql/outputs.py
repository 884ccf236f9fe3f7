"""What is asked for: the columns, counts and aggregates of the head, and what rows are grouped by."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.llm.offline.sql.counting import add_count, asks_count, number_names
from orchestrator.llm.offline.sql.cues import AGGREGATES, DISTINCT
from orchestrator.llm.offline.sql.draft import Draft
from orchestrator.llm.offline.sql.logic import Item
from orchestrator.llm.offline.sql.schema import Field
from orchestrator.llm.offline.sql.shares import share

_EVERYTHING = frozenset({"information", "details", "detail", "everything", "info", "records"})


@dataclass(slots=True)
class Outputs:
    """What the head asks for."""

    items: list[tuple[int, Item]] = field(default_factory=list)
    """(place, what), in the question's order."""
    group: list[Field] = field(default_factory=list)
    named_group: bool = False
    """The question says each, every or per."""
    distinct: bool = False

    def columns(self) -> list[Field]:
        """The plain columns among the items."""
        return [item.column for _, item in self.items if item.column is not None and not item.aggregate]

    def has_aggregate(self) -> bool:
        """Whether an item is an aggregate."""
        return any(item.aggregate for _, item in self.items)


def read_outputs(draft: Draft) -> Outputs:
    """All items; never empty unless the question names nothing at all."""
    outputs = Outputs()
    for statement in draft.reading.hint.statements:
        if statement.formula is not None and draft.choose.pick([(True, 2.5), (False, 0.0)]):
            outputs.items.append((0, statement.formula))
            return outputs
    portion = share(draft)
    if portion is not None:
        outputs.items.append((0, portion))
        draft.counted = draft.counted or next(
            (m.targets[0].table for m in draft.reading.mentions if m.kind == "table"), None
        )
        return outputs
    _groups(draft, outputs)
    _walk(draft, outputs)
    if draft.extreme is not None:
        outputs.items.append((999, draft.extreme))
    if not outputs.items:
        _displayed(draft, outputs)
    _without_idle_groups(draft, outputs)
    places: dict[Item, int] = {}
    for place, item in _later_sentence(draft, outputs.items):
        places.setdefault(item, place)
    outputs.items = [(place, item) for item, place in places.items()]
    return outputs


def _walk(draft: Draft, outputs: Outputs) -> None:
    """From left to right through the head: counts, aggregates waiting for their column, columns."""
    reading = draft.reading
    pending: list[str] = []
    starts = {mention.first: number for number, mention in enumerate(reading.mentions)}
    place = 0
    while place < len(reading.tokens):
        low = reading.lows[place]
        if reading.labels[place] != "head" and not asks_count(draft, place):
            place += 1
            continue
        if place in draft.functions:
            pending.append(draft.functions[place])
        elif low in AGGREGATES and place not in draft.spent and not _is_count_phrase(draft, place):
            pending.append(AGGREGATES[low])
        elif place not in draft.spent and asks_count(draft, place) and add_count(draft, outputs.items, place, pending):
            pending = []
        elif (
            low in {"much", "old", "long", "tall"}
            and place
            and reading.lows[place - 1] == "how"
            and place not in draft.spent
        ):
            _asked_how(draft, outputs, place)
        elif place in starts and starts[place] not in draft.used and not _is_spent(draft, starts[place]):
            if _column(draft, outputs, starts[place], pending):
                pending = []
            place = max(place, reading.mentions[starts[place]].last - 1)
        place += 1


def _is_spent(draft: Draft, number: int) -> bool:
    mention = draft.reading.mentions[number]
    return draft.spent.issuperset(range(mention.first, mention.last))


def _is_count_phrase(draft: Draft, place: int) -> bool:
    """`total number of` counts; it does not add."""
    return (
        draft.reading.lows[place + 1 : place + 2] in {("number",), ("count",)}
        and draft.reading.lows[place] in {"total", "sum"}
        and place + 1 not in number_names(draft)
    )


def _asked_how(draft: Draft, outputs: Outputs, place: int) -> None:
    """`how old`, `how much does it weigh`: a column about that, unless it is named."""
    reading = draft.reading
    concept = {"old": "age", "long": "length", "tall": "height"}.get(reading.lows[place], "")
    if concept:
        options = [
            (
                column,
                score
                + (
                    0.7
                    if column in {i.column for _, i in outputs.items}
                    or column.table in {c.table for c in outputs.columns()}
                    else 0.0
                ),
            )
            for column, score in reading.columns_about(concept)
        ]
        for number in draft.free("column"):
            if reading.mentions[number].first == place:
                draft.use(number)
        if options:
            outputs.items.append((place, Item(column=draft.choose.pick(options))))


def _column(draft: Draft, outputs: Outputs, number: int, pending: list[str]) -> bool:
    """A column that is asked for, with the aggregates that wait for it."""
    reading = draft.reading
    mention = reading.mentions[number]
    if mention.kind != "column" or mention.targets[0].score < 0.75 or draft.reading.is_participle(number):
        return False
    if mention.first and reading.tokens[mention.first - 1].number is not None:
        return False  # a unit: `200 cm`
    column = draft.column(number)
    draft.use(number)
    distinct = not DISTINCT.isdisjoint(reading.between(max(0, mention.first - 2), mention.first))
    if pending:
        for aggregate in pending:
            outputs.items.append((mention.first, Item(column=column, aggregate=aggregate)))
        return True
    outputs.distinct = outputs.distinct or distinct
    outputs.items.append((mention.first, Item(column=column)))
    bare = [token.stem for token in reading.tokens[mention.first : mention.last]] in (["name"], ["full", "name"])
    surname = _surname(draft, column) if bare else None
    if surname is not None and draft.choose.pick([(True, 1.0), (False, 0.3)]):
        outputs.items.append((mention.first, Item(column=surname)))
    return False


def _surname(draft: Draft, column: Field) -> Field | None:
    """The last name that belongs to a first name."""
    if column.words != ("first", "name"):
        return None
    table = draft.reading.schema.tables[column.table]
    return next((other for other in table if other.words == ("last", "name")), None)


def _displayed(draft: Draft, outputs: Outputs) -> None:
    """Nothing is named but a table: what names its rows best, or everything."""
    reading = draft.reading
    heads = [m for m in reading.mentions if m.kind == "table" and draft.label(m) == "head"] or [
        m for m in reading.mentions if m.kind == "table"
    ]
    table = heads[0].targets[0].table if heads else next(iter(reading.schema.tables))
    if not heads and draft.filters and draft.filters[0].column is not None:
        table = draft.filters[0].column.table
    if not _EVERYTHING.isdisjoint(reading.lows) and "all" in reading.lows:
        outputs.items.append((0, Item()))
        draft.counted = draft.counted or table
        return
    options = [(column, 1.6 - 0.8 * rank) for rank, column in enumerate(reading.schema.display(table))]
    column = draft.choose.pick(options)
    outputs.items.append((0, Item(column=column)))
    surname = _surname(draft, column)
    if surname is not None and draft.choose.pick([(True, 1.0), (False, 0.3)]):
        outputs.items.append((0, Item(column=surname)))
    outputs.distinct = not DISTINCT.isdisjoint(reading.lows)


def _groups(draft: Draft, outputs: Outputs) -> None:
    """`for each bridge`, `per city`: the columns that rows are grouped by."""
    reading = draft.reading
    outputs.named_group = "group" in reading.labels
    for number, mention in enumerate(reading.mentions):
        if draft.label(mention) != "group" or number in draft.used or mention.kind == "value":
            continue
        if mention.kind == "column" and mention.targets[0].score >= 0.75:
            before = mention.of("column")
            column = draft.column(number)
            draft.use(number)
            if before and column not in outputs.group:
                outputs.group.append(column)
        elif mention.kind == "table" and not outputs.group:
            nxt = reading.mentions[number + 1] if number + 1 < len(reading.mentions) else None
            if (
                nxt is not None
                and nxt.first == mention.last
                and nxt.kind == "column"
                and reading.labels[nxt.first] == "group"
            ):
                continue
            key = reading.schema.key(mention.targets[0].table)
            shown = reading.schema.display(mention.targets[0].table)[0]
            draft.use(number)
            options = [(shown, 0.5)] + ([(key, 1.0)] if key is not None else [])
            outputs.group.append(draft.choose.pick(options))


def _without_idle_groups(draft: Draft, outputs: Outputs) -> None:
    """`the average number of nights per stay` of a table of stays: a group for each row says nothing."""
    measured = {item.column.table for _, item in outputs.items if item.aggregate and item.column is not None}
    rows = {column.table for column in outputs.group if column.is_primary}
    if measured and measured == rows and len(rows) == len(outputs.group) and draft.counted in {None, *rows}:
        outputs.group.clear()
        outputs.named_group = False


def _later_sentence(draft: Draft, items: list[tuple[int, Item]]) -> list[tuple[int, Item]]:
    """`Which shop ...? Give me its name.` asks for the name alone, unless it says `also` or `as well`."""
    lows = draft.reading.lows
    ends = [place for place, low in enumerate(lows) if low in {"?", ".", ";"} and place < len(lows) - 2]
    if not ends or not {"also", "well", "too"}.isdisjoint(lows):
        return items
    later = [(place, item) for place, item in items if place > ends[0]]
    if later and len(later) < len(items):
        return draft.choose.pick([(later, 2.0), (items, 0.0)])
    return items


def with_group_columns(draft: Draft, outputs: Outputs) -> list[Item]:
    """The items with what tells the groups apart, where the question names the groups."""
    items = [item for _, item in sorted(outputs.items, key=lambda pair: pair[0])]
    if not outputs.named_group or not outputs.group:
        return items
    shown: list[Item] = []
    plain = outputs.columns()
    for column in outputs.group:
        is_key = column.is_primary and not any(word in draft.reading.lows for word in ("id", "ids"))
        display = draft.reading.schema.display(column.table)[0] if is_key else column
        if display not in plain and column not in plain and not any(c.table == column.table for c in plain if is_key):
            shown.append(Item(column=display))
    if not shown:
        return items
    first = min((place for place, _ in outputs.items), default=0)
    group_at = next((place for place, label in enumerate(draft.reading.labels) if label == "group"), 0)
    how_many = "how" in draft.reading.lows
    leads = 1.2 if group_at < first or how_many else 0.0
    arrangements = [((*shown, *items), leads), ((*items, *shown), 1.0 - leads * 0.5), (tuple(items), -0.2)]
    return list(draft.choose.pick(arrangements))
