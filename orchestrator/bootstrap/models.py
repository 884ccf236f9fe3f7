"""Language models by name."""

from __future__ import annotations

from orchestrator.errors import InputError
from orchestrator.llm.offline import OfflineModel
from orchestrator.ports import LanguageModel

OFFLINE = "offline"
REPLAY_PREFIX = "replay/"


def find_model(name: str) -> LanguageModel:
    """The model of a name; that of a replay comes with the run it replays.

    Raises:
        InputError: There is none.
    """
    if name == OFFLINE:
        return OfflineModel()
    msg = f"no model {name!r}; there are {OFFLINE!r}, and '{REPLAY_PREFIX}RUN' to replay a recorded run"
    raise InputError(msg)
