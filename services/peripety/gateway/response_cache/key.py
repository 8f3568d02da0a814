"""Cache key of a request: the name under which its answer is stored."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from peripety import __version__
from peripety.gateway.history import merge_messages
from peripety.gateway.model import ResponseCacheMode, ResponseSchema, Tool

if TYPE_CHECKING:
    from peripety.gateway.model import GenerateRequest
    from peripety.gateway.providers.registry import Answerer

__all__ = ["key_of"]

_FORMAT = 3


def key_of(request: GenerateRequest, answerer: Answerer) -> str:
    """Return the SHA-256, in hexadecimal, of everything that an answer depends on.

    Every field of the request is included, so fields added later are too. Exceptions are the caller's budget
    and storage options, which do not affect the answer. The version of the program is included, because it
    determines how a request is sent.

    Args:
        request: the request.
        answerer: the model and account that would answer.

    Raises:
        InvalidArgumentError: the messages are invalid for every provider.
    """
    asked = replace(
        request,
        messages=merge_messages(request.messages),
        model=answerer.model,
        temperature=None if request.temperature is None else float(request.temperature),
        response_cache=ResponseCacheMode.OFF,
        budget=None,
        conversation_id=None,
        conversation_budget=None,
    )
    document = {
        "format": _FORMAT,
        "program": __version__,
        "provider": answerer.provider,
        "account": answerer.account,
        "request": asked,
    }
    return sha256(_compact(document, sort_keys=True).encode()).hexdigest()


def _compact(value: Any, *, sort_keys: bool) -> str:
    return json.dumps(value, default=_spelt, separators=(",", ":"), sort_keys=sort_keys)


def _spelt(value: Any) -> Any:
    if isinstance(value, ResponseSchema):
        # A model writes an object in the order of its schema, so the order of keys is significant here.
        document = _compact(dict(value.document), sort_keys=False)
        return {"name": value.name, "document": document, "advisory": value.advisory}
    if isinstance(value, Tool):
        return [
            value.name,
            value.description,
            _compact(dict(value.input_schema), sort_keys=False),
            value.strict,
        ]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        kind = type(value).__name__
        return {"kind": kind, **{field.name: getattr(value, field.name) for field in fields(value)}}
    raise TypeError(f"{type(value).__name__} has no canonical form yet")
