"""Generator of the committed JSON Schemas; with `--check`, it only compares them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.engine.policies.spec import PolicySpec
from peripety.engine.schemas import OUTCOME, POLICY_SPEC, SCENARIO_SPEC, SCENARIO_SPEC_1_1
from peripety.engine.spec import Outcome, ScenarioSpec, ScenarioSpec11

if TYPE_CHECKING:
    from pydantic import BaseModel


_MODELS: dict[str, type[BaseModel]] = {
    SCENARIO_SPEC: ScenarioSpec,
    SCENARIO_SPEC_1_1: ScenarioSpec11,
    OUTCOME: Outcome,
    POLICY_SPEC: PolicySpec,
}


def _generate(name: str) -> str:
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_MODELS[name].model_json_schema()}
    return json.dumps(_drop_noise(schema), indent=2, ensure_ascii=False) + "\n"


def _drop_noise(schema: Any) -> Any:
    """Drop keywords without effect: titles, null defaults, and null as an alternative."""
    if isinstance(schema, list):
        return [_drop_noise(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {k: _drop_noise(v) for k, v in schema.items() if not (k == "title" and isinstance(v, str))}
    if kept.get("default", ...) is None:
        del kept["default"]
    choices = [choice for choice in kept.get("anyOf", []) if choice != {"type": "null"}]
    if "anyOf" in kept and len(choices) < len(kept["anyOf"]):
        if len(choices) == 1:
            del kept["anyOf"]
            kept = {**choices[0], **kept}
        else:
            kept["anyOf"] = choices
    return kept


def main(arguments: list[str]) -> int:
    """Write or compare the schemas; return the exit status."""
    stale = []
    for name in _MODELS:
        target = Path(__file__).parent / f"{name}.schema.json"
        if "--check" not in arguments:
            target.write_text(_generate(name), "utf-8")
        elif not target.exists() or target.read_text("utf-8") != _generate(name):
            stale.append(target.name)
    if stale:
        sys.stderr.write(f"schemas out of date: {', '.join(stale)}; run `make generate`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
