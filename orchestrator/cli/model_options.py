"""Options about language models, beside their names: one group that every command which asks models has.

`with_model_options` adds them to a command, which is handed all of them together; so they are written down once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from orchestrator.bootstrap.model_choices import GivenAccess
from orchestrator.bootstrap.model_files import load_models
from orchestrator.cli.options import path_given
from orchestrator.domain.model_access import BaseUrl, Patience, Price, Variable
from orchestrator.errors import InputError
from orchestrator.runtime.complaints import reason
from orchestrator.runtime.strict_yaml import shown

PANEL = "Language models"
_DEFAULTS = Patience()
_URL: TypeAdapter[str] = TypeAdapter(BaseUrl)
_VARIABLE: TypeAdapter[str] = TypeAdapter(Variable)
_PRICE_PART = re.compile(r"[0-9]{1,7}(\.[0-9]{1,12})?|\.[0-9]{1,12}")
_PRICE_FORM = "IN/CACHED/OUT or IN/OUT, in US dollars for a million tokens, for instance 0.5/0.05/2"

ModelsFile = Annotated[
    Path | None,
    typer.Option(
        "--models",
        parser=path_given,
        metavar="FILE",
        help="YAML that gives models names of your own, and says where they are, what they cost and whose key they "
        "take; also ensembles of them.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
BaseUrlGiven = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="Server of models named openai/NAME, for instance http://127.0.0.1:8000/v1 (vLLM, Ollama, llama.cpp, "
        "DeepSeek, a proxy); default OpenAI's own. OpenAI's key is not sent to it.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
KeyEnv = Annotated[
    str | None,
    typer.Option(
        "--key-env",
        metavar="NAME",
        help="Environment variable that holds the key for --base-url; default: it gets none.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
PriceGiven = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="IN/CACHED/OUT",
        help="What the model costs, in US dollars for a million tokens of input, input read from a cache, and output; "
        "IN/OUT for short. Default: as the table of prices says.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
ChunkSeconds = Annotated[
    float | None,
    typer.Option(
        "--chunk-seconds",
        help=f"Give a reply up after so long without a byte of it; default {_DEFAULTS.chunk_seconds:g}.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
RequestSeconds = Annotated[
    float | None,
    typer.Option(
        "--request-seconds",
        help=f"Give a request up after so long, with all that is tried; default {_DEFAULTS.request_seconds:g}.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
OutageSeconds = Annotated[
    float | None,
    typer.Option(
        "--outage-seconds",
        help="Wait so long for a provider that serves nobody before the run is paused, exit code 7; default "
        f"{_DEFAULTS.outage_seconds:g}.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]


def access_given(
    *,
    models: ModelsFile = None,
    base_url: BaseUrlGiven = None,
    key_env: KeyEnv = None,
    price: PriceGiven = None,
    chunk_seconds: ChunkSeconds = None,
    request_seconds: RequestSeconds = None,
    outage_seconds: OutageSeconds = None,
) -> GivenAccess:
    """What the options say together.

    Raises:
        InputError: A value is none of its kind, or the file is malformed; nothing that may be a key is shown.
    """
    seconds = {"chunk_seconds": chunk_seconds, "request_seconds": request_seconds, "outage_seconds": outage_seconds}
    for name, value in seconds.items():
        _require_seconds(name, value)
    return GivenAccess(
        file=None if models is None else load_models(models),
        base_url=None if base_url is None else _validated("--base-url", base_url, _URL),
        key_env=None if key_env is None else _variable(key_env),
        price=None if price is None else price_given(price),
        **seconds,
    )


def with_model_options(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the options of `access_given`, which is called with what they say together as `access`.

    Args:
        command: Takes `access` by name; its other parameters are its own.
    """
    ours = inspect.signature(access_given, eval_str=True).parameters
    own = inspect.signature(command, eval_str=True)

    @wraps(command)
    def wrapped(**options: Any) -> None:  # noqa: ANN401 - of any command
        said = {name: options.pop(name) for name in ours}
        command(**options, access=access_given(**said))

    kept = [parameter for name, parameter in own.parameters.items() if name != "access"]
    parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*kept, *ours.values())]
    vars(wrapped)["__signature__"] = own.replace(parameters=parameters)  # what Typer makes options of
    wrapped.__annotations__ = {one.name: one.annotation for one in parameters}
    return wrapped


def price_given(text: str) -> Price:
    """The price of `IN/CACHED/OUT` or `IN/OUT`.

    Raises:
        InputError: It is neither.
    """
    parts = text.split("/")
    names = {2: ("input", "output"), 3: ("input", "cached_input", "output")}.get(len(parts))
    if names is None:
        msg = f"--price {shown(text)} is not {_PRICE_FORM}"
        raise InputError(msg)
    numbers = dict(zip(names, (part.strip(" ") for part in parts), strict=True))
    for name, number in numbers.items():
        if _PRICE_PART.fullmatch(number) is None:
            msg = (
                f"--price {shown(text)}: {name} must be a number in plain digits, at most 7 before the point and 12 "
                f"behind it; give {_PRICE_FORM}"
            )
            raise InputError(msg)
    try:
        return Price.model_validate(numbers)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        msg = f"--price {shown(text)}: {first['loc'][0]} {reason(first)}; give {_PRICE_FORM}"
        raise InputError(msg) from error


def _variable(name: str) -> str:
    try:
        return _VARIABLE.validate_python(name)
    except ValidationError:
        msg = (
            "--key-env takes the name of an environment variable, not a key (what was given is not shown: it may be a "
            "secret): set the variable to the key, and give its name"
        )
    raise InputError(msg)  # outside of the handler, whose exception holds what was given


def _validated(option: str, value: str, kind: TypeAdapter[str]) -> str:
    """A value that may hold a key where none belongs, so that it is not shown."""
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        msg = f"{option} {reason(error.errors(include_url=False)[0])}"
    raise InputError(msg)


def _require_seconds(name: str, value: float | None) -> None:
    try:
        Patience.model_validate({} if value is None else {name: value})
    except ValidationError as error:
        msg = f"--{name.replace('_', '-')} {value:g}: {reason(error.errors(include_url=False)[0])}"
        raise InputError(msg) from error
