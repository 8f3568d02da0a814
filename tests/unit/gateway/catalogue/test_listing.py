"""Pages of models, in the order of their names."""

from __future__ import annotations

from datetime import date

import pytest

from peripety.errors import InvalidArgumentError
from peripety.gateway.models.catalog import ModelCatalog, ModelList

CATALOGUE = ModelCatalog.load()


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
    assert names(model_list(), "nobody") == []


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
