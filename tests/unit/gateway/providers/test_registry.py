"""Every provider can be chosen with nothing but the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.config import Config, ProviderName
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.gateway.providers.registry import ProviderRegistry, endpoint_of
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest

if TYPE_CHECKING:
    from peripety.gateway.providers.provider import Endpoint


def request(model: str | None) -> GenerateRequest:
    return GenerateRequest(None, (ChatMessage.user("u"),), model=model)


def generic(**settings: Any) -> Config:
    return Config(
        model_provider=ProviderName.GENERIC,
        openai_api_base="http://127.0.0.1:1",
        model_name="m",
        **settings,
    )


@pytest.mark.parametrize(
    ("model", "provider", "bare"),
    [
        (None, "generic", "m"),
        ("plain", "generic", "plain"),
        ("owner/name", "generic", "owner/name"),
        ("generic/owner/name", "generic", "owner/name"),
        ("offline/any", "offline", "any"),
        ("claude-x", "generic", "claude-x"),
        ("offline", "offline", "offline"),
    ],
)
async def test_the_provider_is_chosen_by_configuration_or_by_name(
    model: str | None,
    provider: str,
    bare: str | None,
) -> None:
    providers = ProviderRegistry(generic())
    chosen, call = providers.select(request(model))
    assert (chosen.name, call.model) == (provider, bare)
    await providers.aclose()


async def test_a_provider_is_made_once() -> None:
    providers = ProviderRegistry(generic())
    assert providers.select(request(None))[0] is providers.select(request("generic/x"))[0]
    await providers.aclose()


def test_a_configured_provider_without_its_key_shows_at_the_start() -> None:
    with pytest.raises(FailedPreconditionError, match="OPENAI_API_KEY"):
        ProviderRegistry(Config(model_provider=ProviderName.OPENAI))


def test_another_provider_without_its_setting_shows_when_asked_for() -> None:
    providers = ProviderRegistry(Config())
    with pytest.raises(FailedPreconditionError, match="OPENAI_API_BASE"):
        providers.select(request("generic/m"))


@pytest.mark.parametrize("model", ["nobody/x", "x", "/", "nobody/offline"])
def test_a_model_of_nobody_is_not_taken_for_the_configured_one_where_that_has_no_models(model: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"model .*offline, openai, .*, or leave it empty"):
        ProviderRegistry(Config()).select(request(model))


async def test_whose_name_is_spelled_otherwise_is_known_all_the_same() -> None:
    with pytest.raises(FailedPreconditionError, match="GEMINI_API_KEY"):
        ProviderRegistry(Config()).select(request("Google/x"))


URL = "http://127.0.0.1:9"
CHOICES = {
    ProviderName.OPENAI: {"OPENAI_API_KEY": "k"},
    ProviderName.OPENAI_RESPONSES: {"OPENAI_API_KEY": "k"},
    ProviderName.ANTHROPIC: {"ANTHROPIC_API_KEY": "k"},
    ProviderName.GEMINI: {"GEMINI_API_KEY": "k"},
    ProviderName.DEEPSEEK: {"DEEPSEEK_API_KEY": "k"},
    ProviderName.OLLAMA: {},
    ProviderName.AZURE: {"AZURE_API_BASE": URL, "AZURE_API_KEY": "k"},
    ProviderName.GENERIC: {"OPENAI_API_BASE": URL},
    ProviderName.SCRIPTED: {"SCRIPTED_API_BASE": URL},
}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.endswith(("_API_BASE", "_API_KEY")) or "MODEL_" in name]:
        monkeypatch.delenv(name)


def endpoint(monkeypatch: pytest.MonkeyPatch, provider: ProviderName, **variables: str) -> Endpoint:
    for name, value in {"MODEL_PROVIDER": provider.value, "MODEL_NAME": "m", **variables}.items():
        monkeypatch.setenv(name, value)
    return endpoint_of(provider, Config.from_environment())


@pytest.mark.parametrize("provider", CHOICES, ids=lambda provider: provider.value)
def test_the_environment_is_all_that_it_takes(
    monkeypatch: pytest.MonkeyPatch,
    provider: ProviderName,
) -> None:
    found = endpoint(monkeypatch, provider, **CHOICES[provider])
    assert (found.name, found.model) == (provider.value, "m")
    assert (found.key is not None) is any(name.endswith("_KEY") for name in CHOICES[provider])


def test_no_provider_is_left_out() -> None:
    assert CHOICES.keys() == set(ProviderName) - {ProviderName.OFFLINE}


@pytest.mark.parametrize(
    ("provider", "missing"),
    [(provider, name) for provider, variables in CHOICES.items() for name in variables if "_API_KEY" in name],
)
def test_what_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch,
    provider: ProviderName,
    missing: str,
) -> None:
    rest = {name: value for name, value in CHOICES[provider].items() if name != missing}
    with pytest.raises(FailedPreconditionError, match=missing):
        endpoint(monkeypatch, provider, **rest)


def test_the_key_of_gemini_goes_by_two_names(monkeypatch: pytest.MonkeyPatch) -> None:
    found = endpoint(monkeypatch, ProviderName.GEMINI, GOOGLE_API_KEY="g")
    assert found.key is not None
    assert found.key.get_secret_value() == "g"
    found = endpoint(monkeypatch, ProviderName.GEMINI, GOOGLE_API_KEY="g", GEMINI_API_KEY="k")
    assert found.key is not None
    assert found.key.get_secret_value() == "k"


@pytest.mark.parametrize(
    ("provider", "variable", "ends"),
    [
        (ProviderName.OLLAMA, "OLLAMA_API_BASE", ("", "/", "/v1", "/v1/", "/api")),
        (ProviderName.OLLAMA, "OPENAI_API_BASE", ("", "/", "/v1", "/v1/", "/api")),
        (ProviderName.AZURE, "AZURE_API_BASE", ("", "/", "/openai/v1/", "/openai")),
        (ProviderName.GEMINI, "GEMINI_API_BASE", ("", "/", "/v1beta", "/v1/")),
        (ProviderName.ANTHROPIC, "ANTHROPIC_API_BASE", ("", "/", "/v1", "/v1/")),
    ],
)
def test_a_base_url_may_end_with_the_version(
    monkeypatch: pytest.MonkeyPatch,
    provider: ProviderName,
    variable: str,
    ends: tuple[str, ...],
) -> None:
    for end in ends:
        found = endpoint(monkeypatch, provider, **{**CHOICES[provider], variable: f"{URL}/a{end}"})
        assert found.base_url == f"{URL}/a"


def test_the_key_of_openai_goes_to_an_ollama_server_only_together_with_its_url(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert endpoint(monkeypatch, ProviderName.OLLAMA, OPENAI_API_KEY="k").key is None
    found = endpoint(monkeypatch, ProviderName.OLLAMA, OPENAI_API_BASE=URL)
    assert found.key is not None
    assert (found.base_variable, found.key_variable) == ("OPENAI_API_BASE", "OPENAI_API_KEY")
    found = endpoint(monkeypatch, ProviderName.OLLAMA, OLLAMA_API_BASE=f"{URL}/own")
    assert (found.base_url, found.key) == (f"{URL}/own", None)


def test_a_request_for_ollama_beside_another_provider_does_not_take_that_ones_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"MODEL_PROVIDER": "generic", "OPENAI_API_BASE": URL}.items():
        monkeypatch.setenv(name, value)
    assert endpoint_of(ProviderName.OLLAMA, Config.from_environment()).base_url == "http://127.0.0.1:11434"
