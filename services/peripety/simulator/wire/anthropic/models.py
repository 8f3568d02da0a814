"""Model list of Anthropic, with pagination."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.wire.anthropic.wording import invalid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.simulator.truth.models import Model

__all__ = ["model_page", "model_value"]

USUAL_PAGE = 20
LARGEST_PAGE = 1000

_EPOCH = date(1970, 1, 1)


def model_value(models: Sequence[Model], name: str) -> dict[str, Any]:
    """Return one model.

    Raises:
        ApiError: the model does not exist.
    """
    found = next((model for model in models if model.name == name), None)
    if found is None:
        raise ApiError(ErrorKind.NOT_FOUND, f"model: {name}")
    return _value(found)


def model_page(models: Sequence[Model], params: Mapping[str, str]) -> dict[str, Any]:
    """Return a page of the list, newest first.

    Args:
        models: all models.
        params: `limit`, and `after_id` or `before_id`.

    Raises:
        ApiError: a parameter is not valid.
    """
    limit = _limit(params.get("limit"))
    listed = sorted(models, key=lambda model: (model.released or _EPOCH, model.name), reverse=True)
    names = [model.name for model in listed]
    begin, end = 0, len(listed)
    if (after := params.get("after_id")) is not None:
        begin = _place(names, after, "after_id") + 1
        end = min(end, begin + limit)
        more = end < len(listed)
    elif (before := params.get("before_id")) is not None:
        end = _place(names, before, "before_id")
        begin = max(0, end - limit)
        more = begin > 0
    else:
        end = min(end, limit)
        more = end < len(listed)
    page = listed[begin:end]
    return {
        "data": [_value(model) for model in page],
        "has_more": more,
        "first_id": page[0].name if page else None,
        "last_id": page[-1].name if page else None,
    }


def _limit(value: str | None) -> int:
    if value is None:
        return USUAL_PAGE
    if not value.isdecimal():
        raise invalid("Input should be a valid integer, unable to parse string as an integer", ("limit",))
    limit = int(value)
    if not 1 <= limit <= LARGEST_PAGE:
        bound = "greater than or equal to 1" if limit < 1 else f"less than or equal to {LARGEST_PAGE}"
        raise invalid(f"Input should be {bound}", ("limit",))
    return limit


def _place(names: Sequence[str], name: str, param: str) -> int:
    if name not in names:
        raise invalid(f"unknown model: {name}", (param,))
    return names.index(name)


def _value(model: Model) -> dict[str, Any]:
    released = datetime.combine(model.released or _EPOCH, time(), UTC)
    return {
        "type": "model",
        "id": model.name,
        "display_name": _display_name(model.name),
        "created_at": released.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lifecycle": "active",
        "deprecated_at": None,
        "retires_at": None,
        "line": None,
        "max_input_tokens": model.context,
        "max_tokens": model.output,
        "capabilities": None,
    }


def _display_name(name: str) -> str:
    """Format a display name: `claude-opus-5-5` becomes Claude Opus 5.5."""
    words = [word for word in name.split("-") if not word.isdecimal()]
    version = [word for word in name.split("-") if word.isdecimal()]
    return " ".join([*(word.capitalize() for word in words), ".".join(version)]).strip()
