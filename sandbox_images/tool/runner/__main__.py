"""The `tool` role. What it needs is imported once the interpreter is settled."""

from __future__ import annotations

import importlib
import sys

from session import settle

if __name__ == "__main__":
    settle()
    sys.exit(importlib.import_module("tool").main())
