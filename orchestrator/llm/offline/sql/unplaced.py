"""Which words of a question the engine makes nothing of, so that whoever asked can see what the answer left out."""

from __future__ import annotations

from orchestrator.llm.offline.sql import cues, filters, regions
from orchestrator.llm.offline.sql.reading import Reading, read

_FUNCTION_WORDS = frozenset([
    # articles, pronouns, question words
    "a", "an", "the", "this", "that", "these", "those", "it", "its", "their", "they", "them", "he", "his", "him", "she",
    "her", "we", "us", "our", "you", "your", "me", "my", "i", "who", "whose", "whom", "which", "what", "where", "when",
    "how", "many", "much", "any", "all", "some", "both", "each", "there", "one", "ones",
    # verbs that say that something is, has or does
    "be", "is", "are", "was", "were", "been", "being", "am", "have", "has", "had", "having", "do", "does", "did",
    "can", "could", "will", "would", "should", "may", "might", "must", "want", "need", "know", "get", "please",
    # requests
    "list", "show", "find", "give", "return", "tell", "count", "counts", "display", "report", "name", "number",
    # joints
    "of", "in", "on", "at", "to", "by", "for", "from", "with", "without", "as", "about", "into", "per", "among",
    "and", "or", "but", "also", "then", "than", "if", "so", "only", "just", "within", "during", "between", "via",
    "more", "less", "most", "least", "respectively", "together", "along", "order", "value", "values",
    # words that the grammar knows
    "percentage", "percent", "percentages", "proportion", "share", "fraction", "ratio", "difference",
    "missing", "unknown", "null", "empty", "unspecified", "information", "details", "detail", "everything", "info",
    "records", "word", "letter", "substring", "string", "prefix", "suffix", "phrase", "contain", "contains",
    "containing", "include", "includes", "including", "like", "start", "starts", "starting", "begin", "begins",
    "beginning", "end", "ends", "ending", "exist", "exists", "equal", "equals", "called", "named", "asc", "desc",
    "lexicographical", "lexicographically", "reverse",
])  # fmt: skip
_KNOWN = _FUNCTION_WORDS | cues.DISTINCT | cues.NEGATIONS | cues.EACH | frozenset(cues.AGGREGATES) | regions.ORDER_WORDS


def unplaced_words(schema_text: str, question: str, hint: str) -> tuple[str, ...]:
    """Words that name no table, column or value that the engine found, and shape no query either.

    Args:
        schema_text: As in the request.
        question: Likewise.
        hint: Likewise; words that it explains are placed.

    Returns:
        Of the part that is read (2,000 characters, 200 words), as they are written, in their order, each once.
    """
    reading = read(schema_text, question, hint)
    shaping = _shaping(reading)
    found: dict[str, str] = {}
    for place, token in enumerate(reading.tokens):
        if place not in shaping and not _is_placed(reading, place):
            found.setdefault(token.lower, token.text)
    return tuple(found.values())


def _shaping(reading: Reading) -> frozenset[int]:
    """Places of tokens that name something, compare, rank, order, deny, or are explained by the hint."""
    spans = [(mention.first, mention.last) for mention in reading.mentions]
    spans += [(compared.first, compared.last) for compared in reading.comparisons]
    spans += [(most.first, most.last) for most in cues.superlatives(reading.tokens)]
    for statement in reading.hint.statements:
        first = reading.place_of(statement.phrase)
        spans.append((first, first + len(statement.phrase.split())))
    return frozenset(place for first, last in spans for place in range(first, last))


def _is_placed(reading: Reading, place: int) -> bool:
    token = reading.tokens[place]
    if token.kind == "mark" or token.number is not None:
        return True
    if token.kind == "quoted" or filters.is_spelled(reading.lows[max(0, place - 2) : place], token.text):
        return any(mention.of("column") for mention in reading.mentions)  # it is compared with one of them
    return not _KNOWN.isdisjoint({token.lower, token.stem})
