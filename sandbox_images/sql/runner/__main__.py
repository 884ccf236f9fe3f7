"""The `sql` role: answers queries against one database, or derives a database from another, as the first frame says."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from channel import Channel
from prctl import be_undumpable
from session import parser, serve


def main() -> int:
    """Run until the channel ends."""
    arguments = parser()
    arguments.add_argument("--database", type=Path, default=Path("/data/database.sqlite"), help="What is asked.")
    options = arguments.parse_args()
    be_undumpable()  # before anything is forked, so that no child can look into this process or into another child
    return serve("sql", options.idle_seconds, lambda channel: handle(channel, options.database))


def handle(channel: Channel, database: Path) -> int:
    """Let the first frame decide; neither service needs what the other one imports."""
    first = channel.expect("open", "file")
    if first.type == "file":
        return int(import_module("derive").serve(channel, first))
    return int(import_module("answering").serve(channel, first, database))


if __name__ == "__main__":
    sys.exit(main())
