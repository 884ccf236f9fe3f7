"""The `import` role: fills a volume from frames."""

from __future__ import annotations

import sys
from pathlib import Path

from channel import EXIT_IO, Channel, complain
from session import parser, serve
from volume import Volume


def main() -> int:
    """Run until the volume is stored or the channel ends."""
    arguments = parser()
    arguments.add_argument("--target", type=Path, default=Path("/target"), help="The directory to fill.")
    options = arguments.parse_args()
    return serve("import", options.idle_seconds, lambda channel: store(channel, options.target))


def store(channel: Channel, target: Path) -> int:
    """Take `file` frames until `finish`, answer `stored`."""
    try:
        with Volume(target) as volume:
            while (frame := channel.expect("file", "finish")).type == "file":
                volume.write(frame.head.get("path"), frame.head.get("offset"), frame.head.get("size"), frame.body)
            channel.send({"type": "stored", "digest": volume.finish()})
    except OSError as error:
        complain(f"cannot fill the volume: {error}")
        return EXIT_IO
    return 0


if __name__ == "__main__":
    sys.exit(main())
