"""What was written before for the same inputs, prompts, schema and model, so that nobody is asked again."""

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
    """Keeps what was written, by keys that say of what. It may lose any of it."""

    async def get(self, key: str) -> bytes | None:
        """What is kept under a key; None when nothing is."""
        ...

    async def put(self, key: str, value: bytes) -> None:
        """Keep something under a key, in place of what is there."""
        ...


class MemoryArtifacts:
    """Keeps it as long as the process lives."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        """What is kept under a key; None when nothing is."""
        return self._kept.get(key)

    async def put(self, key: str, value: bytes) -> None:
        """Keep something under a key, in place of what is there."""
        self._kept[key] = value


def key_of(*parts: Any) -> str:
    """A digest of JSON values and of the version of this program, in hex."""
    text = json.dumps([__version__, *parts], sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def fingerprint(order: CompileOrder) -> str:
    """A digest of all that the result of an order depends on, but who answers where it names nobody.

    The budget is no part of it: what was compiled for less money is as good.
    """
    limits = asdict(order.limits)
    del limits["budget"]
    schemas = [schema(order.tools) for schema in (rules_schema, patches_schema, judgement_schema)]
    options = [order.replace_corrected, order.directed, order.mutation, order.model]
    handwritten = [*map(scenario_document, order.handwritten)]
    return key_of(material(order, order.tools), handwritten, limits, options, prompts(), schemas)
