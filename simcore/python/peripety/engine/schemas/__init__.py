"""JSON Schemas (2020-12) of the engine's documents, generated from the models and committed."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "OUTCOME",
    "POLICY_SPEC",
    "SCENARIO_SPEC",
    "SCENARIO_SPEC_1_1",
    "scenario_schema",
    "schema_document",
]


SCENARIO_SPEC = "scenario_spec"
SCENARIO_SPEC_1_1 = "scenario_spec_1_1"
OUTCOME = "outcome"
POLICY_SPEC = "policy_spec"


@cache
def schema_document(name: str) -> Mapping[str, Any]:
    """Return the JSON Schema of one of the names above; shared, so read-only."""
    document: dict[str, Any] = json.loads(
        resources.files(__name__).joinpath(f"{name}.schema.json").read_text("utf-8"),
    )
    return document


def scenario_schema(spec: Any) -> Mapping[str, Any]:
    """Return the JSON Schema of the version of a scenario; that of 1.0 if it names no known version."""
    is_later = isinstance(spec, dict) and spec.get("spec_version") == "1.1"
    return schema_document(SCENARIO_SPEC_1_1 if is_later else SCENARIO_SPEC)
