"""Cache of model output by the fingerprint of its inputs, prompts, schema and model."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol

from peripety import __version__
from peripety.policies.compiling.answers import judgement_schema, patches_schema, rules_schema
from peripety.policies.compiling.material import material, scenario_document
from peripety.policies.prompts import prompts

if TYPE_CHECKING:
    from peripety.policies.model import CompileOrder

__all__ = ["Artifacts", "MemoryArtifacts", "fingerprint", "key_of"]


class Artifacts(Protocol):
    """Cache of model output by key. Entries may be lost at any time."""

    async def get(self, key: str) -> bytes | None:
        """Return the value of a key, or None."""
        ...

    async def put(self, key: str, value: bytes) -> None:
        """Store a value under a key and replace an earlier one."""
        ...


class MemoryArtifacts:
    """In-memory cache for the lifetime of the process."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        """Return the value of a key, or None."""
        return self._kept.get(key)

    async def put(self, key: str, value: bytes) -> None:
        """Store a value under a key and replace an earlier one."""
        self._kept[key] = value


def key_of(*parts: Any) -> str:
    """Return a hex digest of JSON values and of the program version."""
    text = json.dumps([__version__, *parts], sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def fingerprint(order: CompileOrder) -> str:
    """Return a digest of all inputs of an order, except for the default model.

    The budget is left out, because a result with a smaller budget is equally valid.
    """
    limits = asdict(order.limits)
    del limits["budget"]
    schemas = [schema(order.tools) for schema in (rules_schema, patches_schema, judgement_schema)]
    options = [order.replace_corrected, order.directed, order.mutation, order.model]
    handwritten = [*map(scenario_document, order.handwritten)]
    return key_of(material(order, order.tools), handwritten, limits, options, prompts(), schemas)
