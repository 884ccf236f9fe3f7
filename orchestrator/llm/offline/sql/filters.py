"""Which rows: values, comparisons, bare numbers, yes-or-no columns and quoted text become conditions."""

from __future__ import annotations

from orchestrator.llm.offline.sql.draft import Draft
from orchestrator.llm.offline.sql.linking import Mention, Target
from orchestrator.llm.offline.sql.logic import Condition
from orchestrator.llm.offline.sql.reading import nearest
from orchestrator.llm.offline.sql.schema import Field
from orchestrator.llm.offline.sql.words import likeness, name_words
from orchestrator.sql.quoting import text_literal

_CONTAINS = frozenset(
    {
        "contain",
        "contains",
        "containing",
        "include",
        "includes",
        "including",
        "word",
        "substring",
        "letter",
        "having",
        "like",
        "phrase",
    }
)
_STARTS = frozenset({"start", "starts", "starting", "begin", "begins", "beginning", "prefix"})
_ENDS = frozenset({"end", "ends", "ending", "suffix"})
_REACH = 7


def hint_filters(draft: Draft) -> None:
    """What the hint says in so many words."""
    _spend_counted(draft)
    for statement in draft.reading.hint.statements:
        for condition in statement.conditions:
            column = condition.item.column
            if column is None or condition.item.aggregate:
                continue
            _spend_phrase(draft, statement.phrase, column)
            _spend_value(draft, condition)
            if _is_in_formula(draft, condition):
                continue
            if draft.choose.pick([(True, 3.0), (False, 0.0)]):
                place = draft.reading.place_of(statement.phrase)
                draft.add_filter(place, column, condition.op, *condition.literals, negated=False)


def _spend_counted(draft: Draft) -> None:
    """A value that a formula of the hint counts excludes no rows by being spoken of."""
    texts = [p for s in draft.reading.hint.statements if s.formula for p in s.formula.parts if isinstance(p, str)]
    for number in draft.free("value"):
        values = draft.reading.mentions[number].of("value")
        if any(text_literal(target.value or "") in text for target in values for text in texts):
            draft.use(number)


def _is_in_formula(draft: Draft, condition: Condition) -> bool:
    """Whether a formula of the hint counts the rows that meet the condition, so that it excludes none."""
    for statement in draft.reading.hint.statements:
        parts = statement.formula.parts if statement.formula is not None else ()
        if condition.item.column in parts and any(
            isinstance(part, str) and literal in part for part in parts for literal in condition.literals
        ):
            return True
    return False


def _spend_phrase(draft: Draft, phrase: str, column: Field) -> None:
    """What the hint explains needs no meaning of its own: the phrase's mentions of the column are used up."""
    first = draft.reading.place_of(phrase)
    last = first + len(phrase.split())
    for number in draft.free("column"):
        mention = draft.reading.mentions[number]
        named = any(target.column == column for target in mention.of("column"))
        if first <= mention.first < last and named:
            draft.use(number)


def _spend_value(draft: Draft, condition: Condition) -> None:
    """Mentions of the value that the hint has placed need no condition of their own."""
    texts = {literal.strip("'").lower() for literal in condition.literals}
    for number in draft.free("value"):
        mention = draft.reading.mentions[number]
        said = {(target.value or "").lower() for target in mention.of("value")}
        if said & texts:
            draft.use(number)
    for place, token in enumerate(draft.reading.tokens):
        if token.number is not None and token.number in texts:
            draft.spent.add(place)


def value_filters(draft: Draft) -> None:
    """`painters from Peru`: values found in the question, each in one of the columns that hold it."""
    for number in draft.free("value"):
        mention = draft.reading.mentions[number]
        compared = any(c.first <= mention.first < c.last for c in draft.reading.comparisons)
        if number in draft.used or mention.kind != "value" or compared:
            continue
        beside = _beside(draft, number)
        options = [(target, _fit(draft, target, mention, beside)) for target in mention.of("value")]
        target = draft.choose.pick(options)
        if target.column is None or target.value is None:
            continue
        draft.use(number)
        _use_indicator(draft, target.column, beside, mention)
        draft.add_filter(mention.first, target.column, "=", text_literal(target.value))


def _beside(draft: Draft, number: int) -> list[int]:
    """Mentions next to this one, which may say what it is a value of."""
    reading = draft.reading
    mention = reading.mentions[number]
    around = []
    for other in (number - 1, number + 1):
        if 0 <= other < len(reading.mentions):
            near = reading.mentions[other]
            gap = mention.first - near.last if other < number else near.first - mention.last
            between = reading.between(min(near.last, mention.last), max(near.first, mention.first))
            if gap <= 2 and not ({"and", ","} & between):
                around.append(other)
    return around


def _fit(draft: Draft, target: Target, mention: Mention, beside: list[int]) -> float:
    column = target.column
    if column is None:
        return 0.0
    reading = draft.reading
    score = target.score + 0.5 * reading.context(column)
    for number in beside:
        near = reading.mentions[number]
        own = name_words(near.targets[0].table)
        if any(other.column == column for other in near.of("column")):
            score += 1.5
        elif near.kind == "table" and (near.targets[0].table == column.table or set(own) & set(column.words)):
            score += 0.8
    for number, other in enumerate(reading.mentions):
        names_it = any(t.column == column and t.score < 1.0 for t in other.of("column"))
        if number not in beside and names_it and abs(other.first - mention.first) <= 4:
            score += 1.0
    score += max(
        (
            0.7 * likeness(word, token.stem)
            for word in column.words
            for token in reading.tokens[max(0, mention.first - 3) : mention.first]
        ),
        default=0.0,
    )
    return score


def _use_indicator(draft: Draft, column: Field, beside: list[int], mention: Mention) -> None:
    """`language English`: the mention that only says what the value is of is used up, unless it is asked for itself."""
    for number in beside:
        near = draft.reading.mentions[number]
        names_it = any(target.column == column for target in near.of("column"))
        is_before = near.first < mention.first
        glued = not (
            is_before and draft.label(near) == "head" and "of" in draft.reading.between(near.last, mention.first)
        )
        if (
            names_it
            and near.kind == "column"
            and number not in draft.used
            and glued
            and (is_before or draft.label(near) != "head" or near.first == mention.last)
        ):
            draft.use(number)


def flag_filters(draft: Draft) -> None:
    """`that supports X` where X is a column of yes and no."""
    for number in draft.free("column"):
        mention = draft.reading.mentions[number]
        best = mention.of("column")[0]
        said = draft.reading.tokens[mention.first - 1].stem == "be" if mention.first else False
        if best.column is None or best.score < 1.0 or not (said or draft.label(mention) != "head"):
            continue
        value = best.column.true_value or ("1" if said and best.column.is_flag else None)
        if value is None:
            continue
        draft.use(number)
        draft.add_filter(mention.first, best.column, "=", value if best.column.is_number else text_literal(value))


def quoted_filters(draft: Draft) -> None:
    """Quoted text that no column's known values hold: part of a text, or a value not shown."""
    reading = draft.reading
    for place, token in enumerate(reading.tokens):
        if token.kind != "quoted" or place in draft.spent:
            continue
        options: list[tuple[tuple[Field, int], float]] = []
        for number, distance in nearest(reading.mentions, place, draft.free("column")):
            for target in reading.mentions[number].of("column")[:3]:
                if target.column is not None and abs(distance) <= _REACH and not target.column.is_number:
                    options.append(((target.column, number), target.score - 0.2 * abs(distance)))
        if not options:
            continue
        column, number = draft.choose.pick(options)
        draft.spent.add(place)
        if draft.label(reading.mentions[number]) != "head":
            draft.use(number)
        op, pattern = _pattern(draft, place, token.text)
        draft.add_filter(place, column, op, text_literal(pattern))


def word_filters(draft: Draft) -> None:
    """`names that contain the word Bowl`: a word that is spoken of as a word."""
    reading = draft.reading
    for place, token in enumerate(reading.tokens):
        before = reading.lows[max(0, place - 2) : place]
        if place in draft.spent or token.kind != "word" or not is_spelled(before, token.text):
            continue
        options: list[tuple[tuple[Field, int], float]] = []
        for number, distance in nearest(reading.mentions, place, list(range(len(reading.mentions)))):
            for target in reading.mentions[number].of("column")[:3]:
                if target.column is not None and -_REACH <= distance < 0 and not target.column.is_number:
                    options.append(((target.column, number), target.score - 0.2 * abs(distance)))
        if options:
            column, number = draft.choose.pick(options)
            draft.spent.add(place)
            op, pattern = _pattern(draft, place, token.text)
            draft.add_filter(place, column, op, text_literal(pattern))


def is_spelled(before: tuple[str, ...], text: str) -> bool:
    """Whether a word is spoken of as a word, by the one or two before it: `the letter A`, `name starts with Bo`."""
    if before[-1:] and before[-1] in {"word", "letter", "substring", "string", "prefix"}:
        return True
    verb = before[-1:] + before[-2:-1]
    return text[:1].isupper() and any(low in _CONTAINS - {"having", "like"} or low in _STARTS | _ENDS for low in verb)


def _pattern(draft: Draft, place: int, text: str) -> tuple[str, str]:
    around = draft.reading.between(max(0, place - 7), place + 7)
    if around & _STARTS:
        return "LIKE", f"{text}%"
    if around & _ENDS:
        return "LIKE", f"%{text}"
    contains = bool(around & _CONTAINS)
    if draft.choose.pick([(True, 2.0 if contains else 0.0), (False, 0.0 if contains else 1.5)]):
        return "LIKE", f"%{text}%"
    return "=", text
