"""Language models by name."""

from __future__ import annotations

import re

from orchestrator.errors import InputError
from orchestrator.llm.offline import OfflineModel
from orchestrator.ports import LanguageModel

OFFLINE = "offline"
REPLAY_PREFIX = "replay/"
_EFFORT = re.compile(r"offline/effort-(?P<share>0\.[0-9]{1,4}|1(?:\.0{1,4})?)")
"""No more digits than the name of such a model shows, so that different ones have different names."""


def find_model(name: str) -> LanguageModel:
    """The model of a name; that of a replay comes with the run it replays.

    `offline/effort-E`, with E over 0 and at most 1, is the offline engine as a weaker model.

    Raises:
        InputError: There is none.
    """
    if name == OFFLINE:
        return OfflineModel()
    weaker = _EFFORT.fullmatch(name)
    if weaker is not None and (share := float(weaker["share"])) > 0:
        return OfflineModel(effort=share)
    msg = (
        f"no model {name!r}; there are {OFFLINE!r}, '{OFFLINE}/effort-E' with E over 0 and at most 1 for a weaker one, "
        f"and '{REPLAY_PREFIX}RUN' to replay a recorded run"
    )
    raise InputError(msg)
