"""Model list of OpenAI."""

from __future__ import annotations

from datetime import UTC, datetime, time
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.wire.openai.answers import document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.simulator.truth.models import Model
    from peripety.simulator.wire.base import Document

__all__ = ["list_models", "show_model"]


def list_models(models: Sequence[Model], owner: str) -> Document:
    """Return all models of a provider."""
    return document({"object": "list", "data": [_entry(model, model.name, owner) for model in models]})


def show_model(models: Sequence[Model], name: str, owner: str) -> Document:
    """Return one model.

    Raises:
        ApiError: the model does not exist.
    """
    for model in models:
        if any(fnmatchcase(name, glob) for glob in model.names):
            return document(_entry(model, name, owner))
    raise ApiError(
        ErrorKind.NOT_FOUND, f"The model '{name}' does not exist", param="model", code="model_not_found"
    )


def _entry(model: Model, name: str, owner: str) -> dict[str, Any]:
    since = 0 if model.released is None else datetime.combine(model.released, time(), UTC).timestamp()
    return {"id": name, "object": "model", "created": int(since), "owned_by": owner}
