"""The long texts of a page: each kept once, compressed together, and within a size that is fixed beforehand."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from orchestrator.cli.terminal import visible

_BLOCK_CHARACTERS = 1 << 18
_HEAD_SHARE = 0.75
NOTHING = -1
"""The number of a text that there is not."""


class TextPool:
    """Texts by number. Equal ones have one number; a page finds a text by its block.

    A block is a JSON array of texts, deflated. Programs resemble each other, so a block is a small part of its texts.
    """

    def __init__(self, *, max_bytes: int) -> None:
        """Empty.

        Args:
            max_bytes: Of all blocks together, as they stand in the page.
        """
        self._left = max_bytes
        self._numbers: dict[str, int] = {}
        self._open: list[str] = []
        self._open_characters = 0
        self._blocks: list[str] = []
        self._starts: list[int] = []
        self._next = 0
        self.cut = 0
        """Texts of which the page holds a part."""
        self.left_out = 0
        """Texts of which it holds nothing."""

    def add(self, content: str, *, most: int, whole: str) -> int:
        """The number of a text, which is kept unless there is no room.

        Args:
            content: Untrusted.
            most: Characters; a longer text loses its middle.
            whole: Says where all of it can be had.
        """
        shown = self._shortened(visible(content), most, whole)
        known = self._numbers.get(shown)
        if known is not None:
            return known
        if self._left <= 0:
            self.left_out += 1
            shown = f"[{len(shown):,} characters are left out: the page is full; {whole}]"
            if shown in self._numbers:
                return self._numbers[shown]
        return self._kept(shown)

    def document(self) -> dict[str, Any]:
        """`{starts, blocks, cut, left_out}`: the number of each block's first text, and the blocks in base 64."""
        self._close()
        return {"starts": self._starts, "blocks": self._blocks, "cut": self.cut, "left_out": self.left_out}

    def _shortened(self, content: str, most: int, whole: str) -> str:
        if len(content) <= most:
            return content
        self.cut += 1
        head = int(most * _HEAD_SHARE)
        tail = most - head
        return f"{content[:head]}\n[{len(content) - most:,} characters are left out here; {whole}]\n{content[-tail:]}"

    def _kept(self, shown: str) -> int:
        number = self._next
        self._next += 1
        self._numbers[shown] = number
        if not self._open:
            self._starts.append(number)
        self._open.append(shown)
        self._open_characters += len(shown)
        if self._open_characters >= _BLOCK_CHARACTERS:
            self._close()
        return number

    def _close(self) -> None:
        if not self._open:
            return
        packed = zlib.compress(json.dumps(self._open, ensure_ascii=False).encode("utf-8", errors="replace"), 9)
        block = base64.b64encode(packed).decode("ascii")
        self._left -= len(block)
        self._blocks.append(block)
        self._open, self._open_characters = [], 0
