"""`python -m tests.bench.killed HOME STATE RUN`: an orchestrator in the middle of its work, to be killed."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from orchestrator.bootstrap.places import find_places
from orchestrator.domain.frames import Frame, pack_blobs
from orchestrator.domain.policies import Purpose
from orchestrator.evaluation.analyst import SCRIPT
from orchestrator.runtime.workers import CancelToken
from tests.bench.workbench import open_workbench

READY = "ready"
POOL = 2
_SCRIPT = b"import time\ntime.sleep(600)\n"


def main() -> None:
    """Fill a pool, run an analysis, say so, and wait for the end."""
    home, state, run_id = sys.argv[1:]
    places = find_places(Path(home), None)
    with open_workbench(places, Path(state), run_id, CancelToken(), lambda text: print(text, file=sys.stderr)) as bench:  # noqa: T201
        request = bench.request(Purpose.ANALYSIS)
        bench.sandbox.warm(request, POOL)
        bench.await_pool(request, POOL)
        table, body = pack_blobs({SCRIPT: _SCRIPT})
        with bench.sandbox.session(request) as session:
            session.send(Frame({"type": "start", "blobs": table, "script": SCRIPT}, body))
            sys.stdout.write(f"{READY}\n")
            sys.stdout.flush()
            time.sleep(600)


if __name__ == "__main__":
    main()
