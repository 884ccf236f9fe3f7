"""Output items of OpenAI's responses, as they grow out of the events of a stream, in whatever order these come."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.llm.providers.openai_calls import clean
from orchestrator.llm.providers.wire import MAX_REPLY_BYTES

_TEXT, _REFUSAL, _SUMMARY, _THOUGHT = "text", "refusal", "summary", "thought"
_ARGUMENTS, _ENCRYPTED = "arguments", "encrypted"
_PLACES = {
    "response.output_text": ("message", _TEXT, "content_index", "text"),
    "response.refusal": ("message", _REFUSAL, "content_index", "refusal"),
    "response.reasoning_summary_text": ("reasoning", _SUMMARY, "summary_index", "text"),
    "response.reasoning_text": ("reasoning", _THOUGHT, "content_index", "text"),
    "response.function_call_arguments": ("function_call", _ARGUMENTS, "", "arguments"),
}
"""By the name of an event before `.delta` or `.done`: of what item, which part, and where its number and text are."""
_PARTS = {
    "output_text": (_TEXT, "text"),
    "refusal": (_REFUSAL, "refusal"),
    "summary_text": (_SUMMARY, "text"),
    "reasoning_text": (_THOUGHT, "text"),
}
"""Parts of whole items, by their type: which part it is here, and where its text is."""
_MAX_ITEMS = 1024
"""Of one reply; further ones are left aside."""
_MAX_NAME = 200


class Room:
    """How much of a reply has come, and whether more may."""

    def __init__(self) -> None:
        self.taken = 0
        """Bytes of text, reasoning, its encrypted form and arguments."""
        self.is_full = False

    def cut(self, piece: str) -> str:
        """As much of a piece as there is room for, which is then taken."""
        encoded = piece.encode("utf-8", errors="surrogatepass")
        left = MAX_REPLY_BYTES - self.taken
        if len(encoded) > left:
            self.is_full = True
            encoded = encoded[:left]
            piece = encoded.decode("utf-8", errors="ignore")
        self.taken += len(encoded)
        return piece


class _Text:
    """A text under way."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._pieces: list[str] = []
        self._is_settled = False

    def add(self, piece: object) -> None:
        """The next piece; ignored once the whole is known."""
        if isinstance(piece, str) and piece and not self._is_settled and not self._room.is_full:
            self._pieces.append(self._room.cut(piece))

    def settle(self, whole: object) -> None:
        """The whole text, which counts instead of its pieces unless it is empty."""
        if not isinstance(whole, str) or not whole or self._is_settled or self._room.is_full:
            return
        for piece in self._pieces:
            self._room.taken -= len(piece.encode("utf-8", errors="surrogatepass"))
        self._pieces = [self._room.cut(whole)]
        self._is_settled = True

    def __str__(self) -> str:
        return clean("".join(self._pieces))


class Item:
    """One item: a message, a piece of reasoning, a call, or something that nobody here knows."""

    def __init__(self, room: Room) -> None:
        self.kind = ""
        self.id = ""
        self.call_id = ""
        self.name = ""
        self.phase = ""
        """Of a message, `commentary` or `final_answer`; empty: the server names none."""
        self.is_done = False
        self._room = room
        self._parts: dict[tuple[str, int], _Text] = {}

    def part(self, name: str, number: int = 0) -> _Text:
        """A part, which may be new."""
        return self._parts.setdefault((name, number), _Text(self._room))

    def take(self, said: Mapping[str, Any], *, is_whole: bool) -> None:
        """What the server says of the item itself; of one that it only begins, the content is still to come."""
        for field in ("id", "call_id", "name", "phase"):
            if isinstance(value := said.get(field), str):
                setattr(self, field, clean(value)[:_MAX_NAME])
        self.kind = _text(said.get("type")) or self.kind
        if not is_whole:
            return
        self.is_done = True
        for field in ("content", "summary"):
            parts = said.get(field)
            for number, part in enumerate(parts[:_MAX_ITEMS] if isinstance(parts, list) else ()):
                place = _PARTS.get(_text(part.get("type"))) if isinstance(part, Mapping) else None
                if place is not None:
                    self.part(place[0], number).settle(part.get(place[1]))
        arguments = said.get("arguments")
        if isinstance(arguments, Mapping):  # as some servers send them: an object, not its text
            arguments = json.dumps(arguments)
        self.part(_ARGUMENTS).settle(arguments)
        self.part(_ENCRYPTED).settle(said.get("encrypted_content"))

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Parts of a message, in their order: `text` or `refusal`, and what it says."""
        return list(self._said(_TEXT, _REFUSAL))

    @property
    def thoughts(self) -> list[str]:
        """What was thought, in the model's words."""
        return [text for _, text in self._said(_THOUGHT)]

    @property
    def summary(self) -> list[str]:
        """What was thought, in short."""
        return [text for _, text in self._said(_SUMMARY)]

    @property
    def arguments(self) -> str:
        """Of a call."""
        return str(self.part(_ARGUMENTS))

    @property
    def encrypted(self) -> str:
        """What was thought, for the provider alone; empty: it did not say, or the item is not done."""
        return str(self.part(_ENCRYPTED))

    def _said(self, *names: str) -> Iterator[tuple[str, str]]:
        for name, number in sorted(self._parts, key=lambda key: key[1]):
            if name in names and (text := str(self._parts[name, number])):
                yield name, text


class Items:
    """All items of a reply. Not thread-safe."""

    def __init__(self) -> None:
        self.room = Room()
        self._items: dict[int, Item] = {}
        self._numbers: dict[str, int] = {}  # by id, for events that do not say the number

    def __iter__(self) -> Iterator[Item]:
        """In the order of the reply."""
        return (self._items[number] for number in sorted(self._items))

    def __len__(self) -> int:
        """How many there are."""
        return len(self._items)

    def take(self, kind: str, event: Mapping[str, Any]) -> None:
        """Add what an event says of an item; events of other kinds say nothing."""
        said = event.get("item")
        if kind in ("response.output_item.added", "response.output_item.done") and isinstance(said, Mapping):
            if (item := self._item(event.get("output_index"), said.get("id"))) is not None:
                item.take(said, is_whole=kind.endswith(".done"))
            return
        name, _, step = kind.rpartition(".")
        place = _PLACES.get(name)
        if place is None or (item := self._item(event.get("output_index"), event.get("item_id"))) is None:
            return
        item.kind = item.kind or place[0]
        number = event.get(place[2])
        part = item.part(place[1], number if type(number) is int and 0 <= number < _MAX_ITEMS else 0)
        if step == "delta":
            part.add(event.get("delta"))
        elif step == "done":
            part.settle(event.get(place[3]))

    def complete(self, output: object) -> None:
        """Take the list of all items at the end of a reply; it adds what the events before it have left open.

        Where these have told of items, it adds none: some servers count in another way there.
        """
        is_new = not self._items
        for number, said in enumerate(output[:_MAX_ITEMS] if isinstance(output, list) else ()):
            if not isinstance(said, Mapping):
                continue
            item = self._item(number, said.get("id")) if is_new else self._items.get(number)
            if item is not None and item.kind in ("", said.get("type")):
                item.take(said, is_whole=True)

    def _item(self, number: object, identity: object) -> Item | None:
        identity = _text(identity)[:_MAX_NAME]
        if type(number) is not int:
            last = max(self._items, default=-1)
            number = self._numbers.get(identity, last + 1 if identity or last < 0 else last)
        if number not in self._items:
            if len(self._items) == _MAX_ITEMS:
                return None
            self._items[number] = Item(self.room)
        if identity and len(self._numbers) < 4 * _MAX_ITEMS:
            self._numbers[identity] = number
        return self._items[number]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
