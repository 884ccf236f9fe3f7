"""Tables of a run's journal, and how its SQLite file is opened."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Column, Connection, Engine, Integer, LargeBinary, MetaData, String, Table, Text, event
from sqlalchemy import create_engine as create_sqlalchemy_engine
from sqlalchemy.pool import StaticPool

SCHEMA_VERSION = "1"
_BUSY_SECONDS = 30.0  # a reader that recovers the log after a crash holds the owner up for as long

metadata = MetaData()

meta = Table("meta", metadata, Column("name", String, primary_key=True), Column("value", Text, nullable=False))

records = Table(
    "records",
    metadata,
    Column("position", Integer, primary_key=True, autoincrement=True),
    Column("key", String, nullable=False, unique=True),
    Column("digest", String, nullable=False),  # of `record`, so that a flipped bit on the disk is noticed
    Column("record", Text, nullable=False),
)

blobs = Table(
    "blobs",
    metadata,
    Column("digest", String, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)


def create_engine(path: Path, *, read_only: bool) -> Engine:
    """An engine with one connection to the file; the caller serialises its use.

    Nothing is opened before the first `connect`. A missing file is made, unless `read_only`.
    """
    uri = f"file:{quote(str(path.absolute()))}?mode={'ro' if read_only else 'rwc'}"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, check_same_thread=False, timeout=_BUSY_SECONDS, isolation_level=None)

    engine = create_sqlalchemy_engine("sqlite+pysqlite://", creator=connect, poolclass=StaticPool)

    @event.listens_for(engine, "connect")
    def _set_up(connection: sqlite3.Connection, _: object) -> None:
        if not read_only:
            # Readers do not stop the owner, and a commit is on the disk when it returns, not only in the page cache.
            connection.execute("PRAGMA journal_mode = WAL").close()
            connection.execute("PRAGMA synchronous = FULL").close()
        connection.execute("PRAGMA trusted_schema = OFF").close()
        connection.execute("PRAGMA cell_size_check = ON").close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # The driver's own idea of when a transaction starts would leave reads and DDL outside.
        connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    return engine
