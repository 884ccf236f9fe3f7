"""The run id of everything that this process makes on the engine.

Processes that test at the same time need different ones, or one takes the containers of another for leftovers.
"""

from __future__ import annotations

import os

RUN = f"test-run-{os.getpid()}"
