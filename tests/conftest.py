"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# How long an example takes depends on what else the machine does; pytest's own time limit ends what hangs.
settings.register_profile("evolvarium", deadline=None, print_blob=True)
settings.load_profile("evolvarium")
