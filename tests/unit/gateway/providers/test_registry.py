from __future__ import annotations

from typing import Any

import pytest

from peripety.core.config import Config, ProviderName
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest


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
