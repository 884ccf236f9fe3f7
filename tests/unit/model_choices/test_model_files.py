"""Files of models: read strictly, refused with file, field, value and way out, and never with what may be a key."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from textwrap import dedent

import pytest

from orchestrator.bootstrap.model_files import load_models
from orchestrator.bootstrap.robophd.config_file import load_file
from orchestrator.domain.model_access import Price, Provider
from orchestrator.errors import InputError
from orchestrator.llm.prices import read_prices

SECRET = "sk-live-0123456789abcdef"
GOOD = """\
models:
  fast:
    provider: openai
    model: qwen/qwen3-coder
    base_url: http://127.0.0.1:8000/v1/
    key: {file: keys/local}
    context_tokens: 65536
    price: {input: 0.25, cached_input: 0.02, output: 1}
    options: {reasoning_effort: high}
    without: [temperature]
  anthropic/claude-opus-5: {provider: anthropic, model: claude-opus-5-1}
ensembles:
  team: [{model: fast, weight: 3}, {model: anthropic/claude-opus-5}]
patience: {outage_seconds: 60}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "models.yaml"
    path.write_text(text)
    return path


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(InputError) as error:
        load_models(written(folder, text))
    assert SECRET not in str(error.value)
    return str(error.value).removeprefix(str(folder) + "/")


def test_a_file_says_all_of_models_ensembles_and_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = load_models(written(tmp_path, GOOD))
    fast = found.models["fast"]
    assert (fast.provider, fast.model, fast.url) == (Provider.OPENAI, "qwen/qwen3-coder", "http://127.0.0.1:8000/v1")
    assert fast.key is not None
    assert fast.key.file == str(tmp_path / "keys" / "local")
    assert fast.price is not None
    assert (fast.price.input, fast.price.cached_input, fast.price.output) == (
        Decimal("0.25"),
        Decimal("0.02"),
        Decimal(1),
    )
    assert found.models["anthropic/claude-opus-5"].model == "claude-opus-5-1"
    assert [(one.model, one.weight) for one in found.ensembles["team"]] == [
        ("fast", 3.0),
        ("anthropic/claude-opus-5", 1.0),
    ]
    assert found.patience is not None
    assert (found.patience.outage_seconds, found.patience.chunk_seconds) == (60, 300)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a file of models is a mapping with `models`"),
        ("- models", "a file of models is a mapping"),
        ("modles: {}", "`modles` is no field here; did you mean 'models'? allowed are ensembles, models, patience"),
        ("models: {fast: {provider: openai, model: m, pirce: {input: 1, output: 1}}}",
         "`models.fast.pirce` is no field here; did you mean 'price'?"),
        ("models: {fast: {provider: openai, model: m, price: {input: 1, ouput: 1}}}", "did you mean 'output'?"),
        ("models: {fast: {provider: openai, model: m}}\nensembles: {team: [{modle: fast}]}", "did you mean 'model'?"),
        ("models: {fast: {provider: opnai, model: m}}", "`models.fast.provider` is 'opnai': must be"),
        ("models: {fast: {provider: openai}}", "`models.fast.model` is missing; add it"),
        ("models: {fast: {provider: openai, model: m, price: {input: -1, output: 1}}}",
         "`models.fast.price.input` is -1: must be at least 0"),
        ("models: {offline: {provider: openai, model: m}}", "'offline' cannot be the name of a model"),
        ("models: {Fast: {provider: openai, model: m}}", "'Fast' cannot be the name of a model"),
        ("models: {openai/m: {provider: anthropic, model: m}}", "with the provider that its entry names"),
        ("models: {a: {provider: openai, model: m}}\nensembles: {a: [{model: offline}]}",
         "'a' is both a model and an ensemble"),
        ("ensembles: {team: []}", "`ensembles.team` is []: must have at least 1 entries"),
        ("ensembles: {team: [{model: a, weight: 0}]}", "must be greater than 0"),
        ("models: {a: {provider: openai, model: m, options: {extra_headers: {x: y}}}}",
         "`models.a.options` holds extra_headers, and options are recorded with the run; a key comes from `key`"),
        ("models: {a: {provider: openai, model: m}, a: {provider: openai, model: n}}", "occurs twice"),
        ("patience: {chunk_seconds: true}", "`patience.chunk_seconds` is True: must be a number"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_the_way_out(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"models: {{a: {{provider: openai, model: m, key: {SECRET}}}}}", "`models.a.key`"),
        (f"models: {{a: {{provider: openai, model: m, key: {{env: {SECRET}}}}}}}", "`models.a.key.env`"),
        (f"models: {{a: {{provider: openai, model: m, key: {{env: A, file: {SECRET}}}}}}}", "give either env or file"),
        (f"models: {{a: {{provider: openai, model: m, base_url: 'https://u:{SECRET}@host/v1'}}}}", "must hold no user"),
        (
            f"models: {{a: {{provider: openai, model: m, base_url: 'https://h/v1?key={SECRET}'}}}}",
            "must hold no user",
        ),
        (f"models: {{a: {{provider: openai, model: m, options: [{SECRET}]}}}}", "`models.a.options`"),
        (f"models: {{a: {{provider: openai, model: m, options: {{Api-Key: {SECRET}}}}}}}", "holds Api-Key"),
    ],
)
def test_a_key_in_the_wrong_place_is_never_shown(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the models .*none.yaml.*give the path of a YAML file"):
        load_models(tmp_path / "none.yaml")
    with pytest.raises(InputError, match="Is a directory; give the path"):
        load_models(tmp_path)


def test_a_file_that_is_too_large_is_called_that(tmp_path: Path) -> None:
    said = refusal(tmp_path, GOOD + "#" * (256 << 10))
    assert said.endswith("it has over 262144 bytes; make it smaller")


def test_a_wrong_weight_is_one_mistake_and_not_two(tmp_path: Path) -> None:
    said = refusal(tmp_path, "ensembles: {team: [{model: a, weight: 0}]}")
    assert said == "models.yaml: `ensembles.team.0.weight` is 0: must be greater than 0"


def test_many_mistakes_are_told_together_but_not_all(tmp_path: Path) -> None:
    said = refusal(tmp_path, "models: {a: {x1: 1, x2: 1, x3: 1, x4: 1, x5: 1}}")
    assert said.count("is no field here") + said.count("is missing") == 5
    assert "; and 2 more" in said


EVOLVE = """\
datasets: [{{kind: jsonl, root: questions.jsonl}}]
evolver: fast
access:
  models: {{fast: {{provider: openai, model: m, base_url: "http://127.0.0.1:1/v1", {more}}}}}
  patience: {{outage_seconds: 5}}
"""


def evolve_file(folder: Path, more: str) -> Path:
    (folder / "questions.jsonl").write_text("")
    path = folder / "run.yaml"
    path.write_text(EVOLVE.format(more=more))
    return path


def test_the_file_of_an_evolution_may_say_the_same_under_access(tmp_path: Path) -> None:
    choices, _ = load_file(evolve_file(tmp_path, "key: {file: key}, options: {parallel_tool_calls: true}"))
    fast = choices.access.models["fast"]
    assert fast.key is not None
    assert fast.key.file == str(tmp_path / "key")
    assert fast.options == {"parallel_tool_calls": True}
    assert choices.access.patience.outage_seconds == 5
    assert choices.model_validate(choices.model_dump(mode="json")) == choices


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (f"key: {SECRET}", "access: `models.fast.key`"),
        ("prise: {}", "access: `models.fast.prise` is no field here; did you mean 'price'?"),
        (f"options: {{api_key: {SECRET}}}", "access: `models.fast.options` holds api_key"),
    ],
)
def test_the_file_of_an_evolution_is_as_strict_about_it(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        load_file(evolve_file(tmp_path, more))
    assert said in str(error.value)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (f"models: {{a: {{provider: openai, model: m, key: {SECRET}}}}}", "write {env: NAME} or {file: PATH} ("),
        ("models: {a: {provider: openai, model: m, price: 1/2}}", "is '1/2': must be a mapping"),
        ("models: {a: {provider: openai, model: m, price: 1/2}}", "; write {input: 1, output: 2}, in US dollars"),
        ("models: {a: {provider: openai, model: m, without: seed}}", "; write [temperature]"),
        ("models: [a]", "; write {NAME: {provider: openai, model: MODEL}}"),
        ("ensembles: {team: {a: 1}}", "; write [{model: NAME, weight: 3}, {model: OTHER, weight: 1}]"),
        ("ensembles: {team: [a]}", "; write {model: NAME, weight: 1}"),
        ("patience: 300", "; write {chunk_seconds: 300}"),
    ],
)
def test_what_is_written_in_another_shape_is_answered_with_the_form(tmp_path: Path, text: str, form: str) -> None:
    assert form in refusal(tmp_path, text)


def test_the_files_of_the_page_are_well_formed(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
    pasted = page.split("<<'END'\n")[1].split("\nEND\n")[0]
    local = load_models(written(tmp_path, pasted)).models["local"]
    assert (local.context_tokens, local.key_source) == (65536, None)
    assert local.price == Price(input=Decimal(0), output=Decimal(0))
    whole = load_models(written(tmp_path, page.split("## A file of models")[1].split("```yaml\n")[1].split("```")[0]))
    assert (list(whole.models), list(whole.ensembles)) == (["fast", "careful"], ["mixed"])
    prices = tmp_path / "prices.yaml"
    prices.write_text(dedent("  " + page.split("## Money")[1].split("```yaml\n  ")[1].split("```")[0]))
    (own,) = read_prices(prices)
    assert own.base_urls == ("https://models.example.org/v1",)
