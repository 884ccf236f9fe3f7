"""Tables of a page."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.cli.report_page.markup import Markup, element, number


def table(caption: str, columns: Sequence[object], rows: Sequence[Sequence[object]], **attributes: object) -> Markup:
    """A table with a caption, which scrolls where it is too wide.

    Args:
        caption: What it shows.
        columns: Names.
        rows: As many cells each as there are columns; numbers are written for people, anything else as `element` does.
        attributes: Of the table.
    """
    head = element("tr", *[element("th", column, scope="col") for column in columns])
    body = [element("tr", *[_cell(value) for value in row]) for row in rows]
    whole = element("table", element("caption", caption), element("thead", head), element("tbody", *body), **attributes)
    return element("div", whole, class_="wide", tabindex="0", role="group", aria_label=caption)


def facts(caption: str, pairs: Sequence[tuple[str, object]]) -> Markup:
    """Names and values below each other."""
    rows = [
        element(
            "tr", element("th", name, scope="row"), element("td", value if isinstance(value, Markup) else number(value))
        )
        for name, value in pairs
    ]
    return element("table", element("caption", caption), element("tbody", *rows), class_="facts")


def reference(candidate: str) -> Markup:
    """A candidate's id, by which a script shows it."""
    return element("button", candidate, type="button", class_="link", data_id=candidate)


def _cell(value: object) -> Markup:
    if isinstance(value, Markup):
        return element("td", value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return element("td", number(value), class_="number" if is_number else None)
