"""Which card is found for a model, and what the cards say."""

from __future__ import annotations

import pytest

from peripety.gateway.models.catalog import ModelCatalog
from peripety.gateway.models.model_data import CacheKind, Capability

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
