"""`docs/results.md` from its sections; one that is not measured now stays as it was."""

from __future__ import annotations

import re
from collections.abc import Mapping

_TITLE = "# Results\n\nWritten by `make results`; do not edit it by hand.\n"


def assembled(existing: str, sections: Mapping[str, str | None]) -> str:
    """The whole page.

    Args:
        existing: The page as it was; may be empty.
        sections: Heading to text, in order; None: it was not measured now.
    """
    parts = [_TITLE]
    for heading, text in sections.items():
        body = _kept(existing, heading) if text is None else re.sub("^## ", "### ", text, flags=re.MULTILINE)
        parts.append(f"## {heading}\n\n{body.strip()}\n")
    return "\n".join(parts)


def _kept(existing: str, heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", existing, re.MULTILINE | re.DOTALL)
    return found[1] if found is not None else "Not measured yet; `make results` does it."
