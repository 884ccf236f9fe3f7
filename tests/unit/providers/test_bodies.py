"""What cannot be sent is an error of ours that costs nothing, and says nothing of the server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from orchestrator.domain.model_access import Provider
from orchestrator.errors import LostReply, ModelError, ModelUnavailable
from orchestrator.llm.providers.circuit import Pace
from tests.model_lab import ModelLab, model_lab
from tests.model_servers.base import Trouble, Turn

both = pytest.mark.parametrize("provider", list(Provider), ids=str)
FINE = Turn(text="All is well.")
BAD: list[Any] = [float("nan"), float("inf"), {1, 2}, b"raw", "\ud800", 10**5000, object()]


def add_option(lab: ModelLab, value: object) -> None:
    """Past the checks of an entry, as an error of ours would."""
    lab.model._entry.options["metadata"] = {"deep": [value]}


@both
@pytest.mark.parametrize("value", BAD, ids=lambda value: type(value).__name__)
def test_a_body_that_is_no_json_is_an_error_and_not_a_lost_reply(provider: Provider, value: object) -> None:
    with model_lab(provider, [FINE]) as lab:
        add_option(lab, value)
        for _ in range(6):  # more than open a breaker
            with pytest.raises(ModelError, match="nothing was sent") as raised:
                lab.ask()
            assert not isinstance(raised.value, LostReply | ModelUnavailable)
        assert (lab.calls, lab.notes) == (0, [])
        lab.model._entry.options.clear()
        assert lab.ask().message.text == "All is well."


@both
def test_it_is_no_answer_of_a_server_that_is_down_either(provider: Provider) -> None:
    with model_lab(provider, [Trouble(status=500)], outage_seconds=0.0, pace=Pace(failures=1, first_pause=30.0)) as lab:
        with pytest.raises(ModelUnavailable):
            lab.ask()
        add_option(lab, float("nan"))
        with pytest.raises(ModelError, match="nothing was sent"):
            lab.ask()
        lab.model._entry.options.clear()
        with pytest.raises(ModelUnavailable, match="does not serve"):
            lab.ask()
        assert lab.calls == 1


@both
def test_whatever_fails_while_a_body_is_built_is_such_an_error(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> Mapping[str, Any]:
        raise KeyError("role")

    with model_lab(provider, [FINE]) as lab:
        monkeypatch.setattr(lab.model, "_parameters", broken)
        with pytest.raises(ModelError, match="cannot be asked"):
            lab.ask()
        assert lab.calls == 0
