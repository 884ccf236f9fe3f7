"""The deriving service: takes the bytes of a database, and gives back one without what a policy keeps back.

The file is untrusted. It is opened here, in a container that is used for it alone, and whatever it does ends as a
`failed` frame or at the container's limits. The original never leaves: what is sent back has been written anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from channel import Channel
from frames import Frame, ProtocolError
from plans import Dropped
from pruning import prune
from rebuilding import rebuild
from survey import Unsuitable, as_json, opened, read_tables
from volume import Volume

SOURCE = "database.sqlite"
FILES = (SOURCE, f"{SOURCE}-wal", f"{SOURCE}-journal")
"""The database, and where the last writer ended early, what is to be played into it or rolled back."""
PIECE_BYTES = 4 << 20
DROPPED_BYTES = 40_000
"""Of the list of what was left out, which must fit into the head of a frame."""
SURVEY_BYTES = 12 << 20


def serve(channel: Channel, first: Frame) -> int:
    """Take the files, then answer `survey` and `derive` frames until the channel ends.

    Returns:
        The exit code; after a `failed` frame nothing more is answered.
    """
    with tempfile.TemporaryDirectory(prefix="derive-") as folder:
        os.environ["SQLITE_TMPDIR"] = folder
        try:
            frame = _take_files(channel, first, Path(folder, "source"))
            source = Path(folder, "source", SOURCE)
            pruned = prune(source)
            while True:
                _answer(channel, frame, source, Path(folder, "derived.sqlite"), pruned)
                frame = channel.expect("survey", "derive")
        except (sqlite3.Error, sqlite3.Warning, Unsuitable) as error:
            channel.send({"type": "failed", "message": _one_line(str(error))})
        except OSError as error:
            channel.send({"type": "failed", "message": f"the temporary directory failed: {error.strerror}"})
        except MemoryError:
            channel.send({"type": "failed", "message": "out of memory"})
    return 0


def copy_whole(source: Path, target: Path) -> None:
    """A copy with the same content: no write-ahead log, no freed pages.

    Raises:
        sqlite3.Error: The file is no database, is damaged, or does not fit.
    """
    with opened(source) as connection:
        connection.execute("VACUUM INTO ?", (os.fspath(target),))


def _take_files(channel: Channel, frame: Frame, folder: Path) -> Frame:
    """Write the files that come; the first frame after them."""
    folder.mkdir()
    with Volume(folder) as volume:
        while frame.type == "file":
            if frame.head.get("path") not in FILES:
                msg = f"a file {frame.head.get('path')!r:.80} came where one of {', '.join(FILES)} was due"
                raise ProtocolError(msg)
            volume.write(frame.head.get("path"), frame.head.get("offset"), frame.head.get("size"), frame.body)
            frame = channel.expect("file", "survey", "derive")
        volume.finish()
    folder.chmod(0o700)  # SQLite puts files of its own beside the database
    for file in folder.iterdir():
        file.chmod(0o600)
    return frame


def _answer(channel: Channel, frame: Frame, source: Path, target: Path, pruned: Dropped) -> None:
    if frame.type == "survey":
        with opened(source) as connection:
            tables = read_tables(connection)
        body = json.dumps({"tables": as_json(tables)}).encode()
        if len(body) > SURVEY_BYTES:
            msg = f"its schema takes {len(body)} bytes, over {SURVEY_BYTES}"
            raise Unsuitable(msg)
        channel.send({"type": "surveyed", "unnamed_columns": sum(len(table.unnamed) for table in tables)}, body)
        return
    keep = _checked(frame.head.get("keep"))
    if keep is None:
        copy_whole(source, target)
    lost = [] if keep is None else rebuild(source, target, keep)
    _send(channel, target, [[*entry] for entry in (*pruned, *lost)])
    target.unlink()


def _checked(keep: object) -> dict[str, list[str]] | None:
    """What is to be kept.

    Raises:
        ProtocolError: It is not `{table: [columns]}` or null.
    """
    if keep is None:
        return None
    if isinstance(keep, dict) and all(isinstance(columns, list) for columns in keep.values()):
        return {table: [str(column) for column in columns] for table, columns in keep.items()}
    msg = "'keep' is not {table: [columns]}"
    raise ProtocolError(msg)


def _send(channel: Channel, target: Path, dropped: list[list[str]]) -> None:
    with target.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
        head: dict[str, Any] = {"type": "derived", "size": size, "sha256": digest, "dropped": _bounded(dropped)}
        channel.send(head)
        for offset in range(0, size, PIECE_BYTES):
            file.seek(offset)
            channel.send({"type": "piece", "offset": offset}, file.read(PIECE_BYTES))


def _bounded(dropped: list[list[str]]) -> list[list[str]]:
    """As many entries as fit, and one that says how many more there are."""
    room = DROPPED_BYTES
    for index, entry in enumerate(dropped):
        entry[-1] = _one_line(entry[-1])
        room -= len(json.dumps(entry))
        if room < 0:
            return [*dropped[:index], ["things", f"{len(dropped) - index} more", "left out as well"]]
    return dropped


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]
