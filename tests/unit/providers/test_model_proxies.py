"""What goes out in clear goes to the server that the policy names, whatever proxy the environment knows."""

from __future__ import annotations

import pytest

from orchestrator.domain.model_access import Provider
from tests.model_lab import model_lab
from tests.model_servers.base import KEY, Turn
from tests.model_servers.openai import OpenAIServer


@pytest.mark.parametrize("provider", list(Provider))
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_no_proxy_sees_a_request_without_tls(
    provider: Provider, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer([Turn(text="I am the proxy.")], key=KEY) as proxy:
        monkeypatch.setenv(variable, proxy.url.removesuffix("/v1"))
        with model_lab(provider, [Turn(text="I am the model.")]) as lab:
            assert lab.ask().message.text == "I am the model."
            lab.model.check()
        assert proxy.requests == []
        assert proxy.others == []
