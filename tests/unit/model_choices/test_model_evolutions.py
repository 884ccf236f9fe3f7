"""An evolution whose questions a server answers: what is recorded of it suffices to walk through it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.models import ready_models
from orchestrator.bootstrap.policies import find_policy
from orchestrator.bootstrap.robophd.replaying import replay_evolution
from orchestrator.bootstrap.robophd.running import Watch
from orchestrator.runtime.workers import CancelToken
from tests.model_servers.base import KEY, Turn
from tests.model_servers.openai import MODEL, OpenAIServer
from tests.recorded_evolution import SETTINGS, RecordedEvolutions

VARIABLE = "CANARY_KEY"


def test_it_is_walked_through_without_key_server_or_rule_and_comes_to_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, KEY)
    evolutions = RecordedEvolutions(tmp_path)
    with OpenAIServer([Turn(text="```sql\nSELECT 1\n```", input_tokens=321)]) as server:
        access = GivenAccess(base_url=server.url, key_env=VARIABLE).over()
        choices = evolutions.choices.model_copy(update={"answerer": f"openai/{MODEL}", "access": access})
        policy = find_policy(evolutions.places, choices.policy)
        opening = ready_models(
            access, policy, choices.wanted, in_usd=False, token=CancelToken(), note=evolutions.notes.append
        )
        with opening as models:
            evolutions.models = models.find
            run_id = evolutions.made(SETTINGS.model_copy(update={"iterations": 1}), choices)
        asked = len(server.requests)
    monkeypatch.delenv(VARIABLE)
    with evolutions.store.open(run_id, read_only=True) as journal:
        header = journal.get("run") or {}
    assert header["context_tokens"][f"openai/{MODEL}"] > 0
    assert header["choices"]["access"]["key_env"] == VARIABLE
    replayed = replay_evolution(evolutions.places, run_id, Watch(token=CancelToken(), note=evolutions.notes.append))
    assert replayed.spent.by_model[f"openai/{MODEL}"].requests == asked > 0
    files = [path for path in evolutions.home.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
