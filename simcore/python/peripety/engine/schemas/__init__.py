"""JSON Schemas (2020-12) of the engine's documents, generated from the models and committed."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OUTCOME", "POLICY_SPEC", "SCENARIO_SPEC", "schema_document"]


SCENARIO_SPEC = "scenario_spec"
OUTCOME = "outcome"
POLICY_SPEC = "policy_spec"


@cache
def schema_document(name: str) -> Mapping[str, Any]:
    """Return the JSON Schema of `SCENARIO_SPEC`, `OUTCOME` or `POLICY_SPEC`; shared, so read-only."""
    document: dict[str, Any] = json.loads(
        resources.files(__name__).joinpath(f"{name}.schema.json").read_text("utf-8"),
    )
    return document
