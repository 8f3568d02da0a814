"""List of the available models, in pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.gateway.catalogue.names import provider_named
from peripety.pages import Page, Position, page_of, page_size, position_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from peripety.gateway.catalogue.catalogue import Catalogue
    from peripety.gateway.catalogue.model import ModelData

__all__ = ["ListedModel", "ModelList"]


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model that can be requested.

    Attributes:
        name: `provider/model`.
        data: its catalog data.
        is_default: whether it answers requests without a model.
    """

    name: str
    data: ModelData
    is_default: bool


class ModelList:
    """All named models that are not retired, and the default model.

    Args:
        catalogue: the model catalog.
        default: provider and model of requests without a model; None if not configured.
        today: returns the day, in UTC.
    """

    def __init__(
        self, catalogue: Catalogue, default: tuple[str, str] | None, today: Callable[[], date]
    ) -> None:
        self._catalogue = catalogue
        self._default = default
        self._today = today

    def page(self, provider: str, asked_size: int, token: str) -> Page[ListedModel]:
        """Return a page of models, sorted by name.

        Args:
            provider: only its models; empty for all.
            asked_size: page size; 0 uses the server's default.
            token: token of the page; empty for the first one.

        Raises:
            InvalidArgumentError: the page size or token is invalid.
        """
        size, before = page_size(asked_size), position_in(token)
        models = self._models(provider_named(provider))
        begin = 0 if before is None else before.number + 1
        places = {model.name: place for place, model in enumerate(models)}
        return page_of(models[begin : begin + size + 1], size, lambda model: Position(places[model.name]))

    def _models(self, provider: str) -> list[ListedModel]:
        today = self._today()
        found = {
            f"{model.provider}/{model.name}": model
            for model in self._catalogue.models(provider or None)
            if model.retired is None or model.retired > today
        }
        default = None
        if self._default is not None and provider in {"", self._default[0]}:
            default = "/".join(self._default)
            found.setdefault(default, self._catalogue.find(*self._default))
        return [ListedModel(name, found[name], is_default=name == default) for name in sorted(found)]
