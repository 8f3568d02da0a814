"""Model files: additions and corrections of a user's own file, and error messages for an invalid one.

Lookup of the card of a model, and the contents of the cards.

Pages of models, in the order of their names.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from peripety.errors import InvalidArgumentError
from peripety.gateway.models.catalog import ModelCatalog, ModelFiles, ModelList
from peripety.gateway.models.model_data import CacheKind, Capability

if TYPE_CHECKING:
    from pathlib import Path


ANY_OTHER = """
[[model]]
provider = "p"
name = "*"
capabilities = ["tools"]
default_output_tokens = 100
cache = { kind = "breakpoints", minimum_tokens = 10, ttls = { short = 300 } }
"""


def with_file(tmp_path: Path, text: str) -> ModelCatalog:
    path = tmp_path / "mine.toml"
    path.write_text(text, "utf-8")
    return ModelCatalog.load(path)


def read(*texts: str) -> ModelCatalog:
    cards = ModelFiles()
    for index, text in enumerate(texts):
        cards.add(text, f"{index}.toml")
    return ModelCatalog(cards.models())


def test_a_file_adds_a_model_to_a_provider(tmp_path: Path) -> None:
    catalogue = with_file(
        tmp_path,
        """
        [[model]]
        provider = "generic"
        name = "alpha"
        names = ["alpha-*"]
        context_tokens = 32_768
        prices = [{ input = 0.05, output = 0.2, cache_read = 0 }]
        """,
    )
    found = catalogue.find("generic", "alpha-7b")
    assert (found.name, found.context_tokens, found.prices[0].input) == ("alpha", 32_768, 50_000)
    assert found.capabilities == ModelCatalog.load().find("generic", None).capabilities
    assert [model.name for model in catalogue.models("generic")] == ["alpha"]


def test_a_file_corrects_what_comes_with_the_version(tmp_path: Path) -> None:
    before = ModelCatalog.load().find("anthropic", "claude-opus-4-7")
    catalogue = with_file(
        tmp_path,
        """
        [[model]]
        provider = "anthropic"
        name = "claude-opus-4-7"
        cache = { minimum_tokens = 512 }
        """,
    )
    found = catalogue.find("anthropic", "claude-opus-4-7")
    assert (before.cache.minimum_tokens, found.cache.minimum_tokens) == (2048, 512)
    assert (found.prices, found.released, found.traits) == (before.prices, before.released, before.traits)
    assert len(catalogue.models()) == len(ModelCatalog.load().models())


def test_names_of_a_later_file_go_before_those_of_an_earlier_one() -> None:
    catalogue = read(
        ANY_OTHER + '[[model]]\nprovider = "p"\nname = "a"\nnames = ["a*"]\n',
        '[[model]]\nprovider = "p"\nname = "b"\nnames = ["ab*"]\n',
    )
    assert [catalogue.find("p", name).name for name in ("abc", "acc")] == ["b", "a"]


def test_a_card_takes_over_all_but_names_and_dates() -> None:
    catalogue = read(
        ANY_OTHER
        + """
        [[model]]
        provider = "p"
        name = "a"
        names = ["first"]
        released = 2026-01-01
        context_tokens = 1000
        traits = { sampling = false, strict_schema = true }
        [[model]]
        provider = "p"
        name = "b"
        like = "a"
        traits = { sampling = true }
        """,
    )
    found = catalogue.find("p", "b")
    assert (found.names, found.released, found.context_tokens) == ((), None, 1000)
    assert (found.traits.sampling, found.traits.strict_schema) == (True, True)
    assert found.capabilities == {Capability.TOOLS}


CARD = ANY_OTHER + '[[model]]\nprovider = "p"\nname = "a"\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[model]", "is not TOML: "),
        ("[models]", "models: unknown key; a model file has only [[model]] tables"),
        ("model = 1", "model: must be an array of tables; write [[model]]"),
        ("model = [1]", "model[0].provider: is required, as text"),
        ('[[model]]\nprovider = "p"', "model[0].name: is required, as text"),
        (CARD + "like = 1", "model[1].like: must be the name of a model of the same provider"),
        (CARD + 'like = "b"', "p/a: like: unknown model p/b; add its entry"),
        (CARD + 'like = "a"', "p/a: like: circular reference; remove it"),
        ('[[model]]\nprovider = "q"\nname = "a"', "q/a: like: unknown model q/*; add the provider's entry"),
        (CARD + ANY_OTHER, "p/*: duplicate model; merge the two entries"),
        (CARD + "price = 1", "p/a: price: Unexpected keyword argument"),
        (CARD + "context_tokens = -1", "p/a: context_tokens: Input should be greater than or equal to 0"),
        (CARD + 'capabilities = ["flies"]', "p/a: capabilities[0]: Input should be 'tools'"),
        (CARD + 'traits = { length_field = "n" }', "p/a: traits.length_field: Input should be 'max_tokens'"),
        (CARD + "cache = { lifetimes = {} }", "p/a: cache.lifetimes: Unexpected keyword argument"),
        (CARD + "max_output_tokens = 99", "p/a: default_output_tokens: exceeds max_output_tokens"),
        (
            CARD + "prices = [{ input = 1, output = 1 }]",
            "p/a: prices[0].cache_read: Field required",
        ),
        (
            CARD + 'prices = [{ input = "1", output = 1, cache_read = 1 }]',
            "p/a: prices[0].input: must be a number of dollars for a million tokens",
        ),
        (
            CARD + "prices = [{ input = 0.0000001, output = 1, cache_read = 1 }]",
            "p/a: prices[0].input: must have at most 6 decimals",
        ),
        (
            CARD + "prices = [{ input = nan, output = 1, cache_read = 1 }]",
            "p/a: prices[0].input: must have at most 6 decimals",
        ),
        (
            CARD + "prices = [{ input = 1, output = -1, cache_read = 1 }]",
            "p/a: prices[0].output: Input should be greater than or equal to 0",
        ),
        (
            CARD + "prices = [{ input = 1, output = 1, cache_read = 1, cache_write = { long = 2 } }]",
            "p/a: prices[0].cache_write: 'long' is not in cache.ttls",
        ),
        (
            CARD + "prices = [{ min_input_tokens = 5, input = 1, output = 1, cache_read = 1 }]",
            "p/a: prices: no day lacks a price for small prompts at any hour",
        ),
        (
            CARD
            + "prices = [{ input = 1, output = 1, cache_read = 1 },"
            + " { input = 2, output = 2, cache_read = 2 }]",
            "p/a: prices: two prices from no day on for 0 tokens; remove one",
        ),
        (
            CARD
            + "prices = [{ input = 1, output = 1, cache_read = 1 },"
            + "{ input = 2, output = 1, cache_read = 1, peak = { weekdays = [0], hours = [] } }]",
            "p/a: prices[1].peak.weekdays[0]: Input should be greater than or equal to 1",
        ),
    ],
)
def test_a_bad_file_is_an_error_that_names_file_model_and_key(
    tmp_path: Path,
    text: str,
    problem: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        with_file(tmp_path, text)
    assert str(caught.value).startswith(f"model file {tmp_path / 'mine.toml'}: {problem}")
    assert caught.value.code == "BAD_CONFIGURATION"


def test_a_file_that_is_not_there_is_an_error_that_names_the_variable(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"PERIPETY_MODELS: cannot read .*gone: No such file"):
        ModelCatalog.load(tmp_path / "gone")


def test_a_file_that_is_not_text_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgumentError, match="not UTF-8"):
        ModelCatalog.load(path)


CATALOGUE = ModelCatalog.load()
PROVIDERS = ("anthropic", "openai", "deepseek", "gemini", "ollama", "generic", "azure", "offline", "scripted")


@pytest.mark.parametrize(
    ("provider", "model", "name"),
    [
        ("anthropic", "claude-opus-5", "claude-opus-5"),
        ("anthropic", "claude-opus-5-5", "claude-opus-5-5"),
        ("anthropic", "claude-opus-5-20260724", "claude-opus-5"),
        ("anthropic", "claude-opus-5.5", "claude-opus-5-5"),
        ("anthropic", "Claude-Haiku-4-5-20251001", "claude-haiku-4-5"),
        ("anthropic", "claude-opus-7", "*"),
        ("openai", "gpt-5", "gpt-5"),
        ("openai", "gpt-5-2025-08-07", "gpt-5"),
        ("openai", "gpt-5-mini", "gpt-5-mini"),
        ("openai", "gpt-5.4-nano-2026-03-17", "gpt-5.4-nano"),
        ("openai", "gpt-5-codex", "*"),
        ("openai", "gpt-5.6", "gpt-5.6-sol"),
        ("deepseek", "deepseek-reasoner", "deepseek-flash"),
        ("gemini", "gemini-3.5-flash", "gemini-3.5-flash"),
        ("gemini", "gemini-3.5-flash-lite", "gemini-3.5-flash-lite"),
        ("gemini", "gemini-flash-latest", "gemini-3.8-flash"),
        ("google", "gemini-2.5-pro", "gemini-2.5-pro"),
        ("Google", "gemini-2.5-pro-preview-06-05", "gemini-2.5-pro"),
        ("generic", "gpt-5", "*"),
        ("openai", None, "*"),
        ("openai", "", "*"),
    ],
)
def test_a_model_is_found_by_any_of_its_names(provider: str, model: str | None, name: str) -> None:
    assert CATALOGUE.find(provider, model).name == name


def test_of_a_provider_that_is_not_known_what_holds_for_any_server_is_said() -> None:
    found = CATALOGUE.find("elsewhere", "m")
    assert (found.provider, found.name) == ("elsewhere", "*")
    assert found.capabilities == CATALOGUE.find("generic", "m").capabilities


def test_one_provider_may_serve_the_models_of_another() -> None:
    chat, responses = (CATALOGUE.find(name, "gpt-6-sol") for name in ("openai", "openai-responses"))
    assert (responses.provider, responses.prices, responses.cache) == (
        "openai-responses",
        chat.prices,
        chat.cache,
    )
    assert [model.name for model in CATALOGUE.models("openai-responses")] == [
        model.name for model in CATALOGUE.models("openai")
    ]
    assert CATALOGUE.find("openai-responses", "m").traits == CATALOGUE.find("openai", "m").traits


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("claude-opus-5-5", "anthropic"),
        ("CLAUDE-X", "anthropic"),
        ("gemini-4-argon", "gemini"),
        ("deepseek-flash", "deepseek"),
        ("gpt-6-sol", "openai"),
        ("chatgpt-4o-latest", "openai"),
        ("o3", "openai"),
        ("O4-mini", "openai"),
        ("olmo-3", None),
        ("my-gpt", None),
        ("", None),
    ],
)
def test_the_beginning_of_a_name_tells_the_provider(model: str, provider: str | None) -> None:
    assert CATALOGUE.provider_of(model) == provider


def test_models_are_listed_in_the_order_of_their_full_names() -> None:
    names = [f"{model.provider}/{model.name}" for model in CATALOGUE.models()]
    assert names == sorted(set(names))
    assert not [name for name in names if "*" in name]
    assert {name.partition("/")[0] for name in names} == {"anthropic", "openai", "deepseek", "gemini"}
    assert CATALOGUE.models("google") == CATALOGUE.models("gemini") != ()
    assert CATALOGUE.models("generic") == CATALOGUE.models("elsewhere") == ()


def test_every_model_is_found_by_its_own_name_and_knows_its_provider() -> None:
    for model in CATALOGUE.models():
        assert CATALOGUE.find(model.provider, model.name) == model
        assert CATALOGUE.provider_of(model.name) == model.provider


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_has_a_card_for_any_other_name(provider: str) -> None:
    found = CATALOGUE.find(provider, "none-of-them")
    assert (found.provider, found.is_default_entry) == (provider, True)


def test_figures_fit_together() -> None:
    for model in (*CATALOGUE.models(), *(CATALOGUE.find(provider, None) for provider in PROVIDERS)):
        name = f"{model.provider}/{model.name}"
        assert (model.cache.kind is CacheKind.NONE) == (Capability.PROMPT_CACHE not in model.capabilities), (
            name
        )
        assert model.max_output_tokens <= (model.context_tokens or model.max_output_tokens), name
        assert list(model.cache.ttls.values()) == sorted(model.cache.ttls.values()), name
        if Capability.REASONING in model.capabilities:
            assert model.default_output_tokens > 4096, f"{name} would be cut while it reasons"
        if model.released and model.retired:
            assert model.released < model.retired, name
        for price in model.prices:
            assert list(price.cache_write) == (list(model.cache.ttls) if price.cache_write else []), name


@pytest.mark.parametrize(
    ("model", "minimum"),
    [
        ("claude-opus-5-5", 512),
        ("claude-sonnet-5", 1024),
        ("claude-opus-4-7", 2048),
        ("claude-haiku-4-5", 4096),
    ],
)
def test_the_shortest_prompt_that_is_cached_depends_on_the_model(model: str, minimum: int) -> None:
    rules = CATALOGUE.find("anthropic", model).cache
    assert (rules.kind, rules.minimum_tokens) == (CacheKind.BREAKPOINTS, minimum)
    assert (rules.max_breakpoints, rules.lookback, rules.ttls) == (4, 20, {"5m": 300, "1h": 3600})


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("gpt-5.5", CacheKind.AUTOMATIC),
        ("gpt-5.6-luna", CacheKind.AUTOMATIC_BREAKPOINTS),
        ("gpt-6-astra", CacheKind.AUTOMATIC_BREAKPOINTS),
        ("o3", CacheKind.AUTOMATIC),
    ],
)
def test_the_way_of_caching_changed_with_a_version(model: str, kind: CacheKind) -> None:
    assert CATALOGUE.find("openai", model).cache.kind is kind


def test_models_of_one_provider_want_to_be_asked_differently() -> None:
    new, old = (CATALOGUE.find("anthropic", name).traits for name in ("claude-opus-5-5", "claude-opus-4-5"))
    assert (new.sampling, new.forced_tool_choice, new.assistant_prefill) == (False, False, False)
    assert (old.sampling, old.forced_tool_choice, old.assistant_prefill) == (True, True, True)
    assert (new.api_version, old.api_version) == ("2026-10-21", "2023-06-01")
    new, old = (CATALOGUE.find("openai", name).traits for name in ("gpt-6.1-sol", "gpt-4.1"))
    assert (new.instructions_role, new.tools_while_reasoning) == ("developer", False)
    assert (old.instructions_role, old.tools_while_reasoning) == ("system", True)
    assert {new.length_field, old.length_field} == {"max_completion_tokens"}


def model_list(default: tuple[str, str] | None = None, today: date = date(2026, 11, 22)) -> ModelList:
    return ModelList(CATALOGUE, default, lambda: today)


def names(models: ModelList, provider: str = "") -> list[str]:
    return [model.name for model in models.page(provider, 1_000, "").items]


def defaults(models: ModelList, provider: str = "") -> list[str]:
    return [model.name for model in models.page(provider, 1_000, "").items if model.is_default]


@pytest.mark.parametrize("size", [1, 7, 50])
def test_pages_together_are_the_whole_list(size: int) -> None:
    models, found, token = model_list(), list[str](), ""
    while True:
        page = models.page("", size, token)
        found += [model.name for model in page.items]
        token = page.next_page_token
        if not token:
            break
        assert len(page.items) == size
    assert found == names(models) == sorted(found)


def test_a_page_has_the_models_of_one_provider() -> None:
    found = names(model_list(), "anthropic")
    assert found == [f"anthropic/{model.name}" for model in CATALOGUE.models("anthropic")]
    assert names(model_list(), "google") == names(model_list(), "gemini")
    assert names(model_list(), "unknown") == []


def test_what_is_retired_is_not_listed() -> None:
    assert "anthropic/claude-sonnet-4-5" in names(model_list(today=date(2026, 11, 29)))
    assert "anthropic/claude-sonnet-4-5" not in names(model_list(today=date(2026, 11, 30)))


def test_the_default_is_listed_whatever_its_name() -> None:
    assert defaults(model_list()) == []
    assert defaults(model_list(("anthropic", "claude-opus-5-5"))) == ["anthropic/claude-opus-5-5"]
    models = model_list(("generic", "a/b"))
    assert defaults(models) == names(models, "generic") == ["generic/a/b"]
    assert defaults(models, "openai") == []
    assert len(names(models)) == len(names(model_list())) + 1


def test_a_snapshot_as_default_is_known_as_its_model() -> None:
    (found,) = [
        model
        for model in model_list(("openai", "gpt-5-2025-08-07")).page("openai", 0, "").items
        if model.is_default
    ]
    assert (found.name, found.data) == ("openai/gpt-5-2025-08-07", CATALOGUE.find("openai", "gpt-5"))


def test_a_page_that_cannot_be_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="page_size"):
        model_list().page("", -1, "")
    with pytest.raises(InvalidArgumentError, match="page_token"):
        model_list().page("", 0, "a")
