"""Static checks of a scenario, beyond its JSON Schema.

Each function receives parts of a document that is valid against the schema, and yields findings in document
order.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from peripety.engine.checks.craft_checks import check_craft
from peripety.engine.checks.document_checks import StateModel, check_document
from peripety.engine.checks.lowered_key_checks import check_lowered_keys
from peripety.engine.checks.rule_checks import check_rules
from peripety.engine.checks.story_checks import check_story
from peripety.engine.lowering import lower
from peripety.engine.schema_validation import MAX_FINDINGS

if TYPE_CHECKING:
    from peripety.errors import Finding


def check_spec(spec: dict[str, Any]) -> list[Finding]:
    """Return the findings of a scenario that is valid against the schema, at most 50."""
    lowering = lower(spec)
    lowered = lowering.spec
    world = StateModel(lowered)
    found = chain(check_document(lowered), check_rules(lowered, world), check_story(lowered, world))
    if not lowering.is_identity:
        written = (replace(finding, path=lowering.to_written(finding.path)) for finding in found)
        found = chain(dict.fromkeys(chain(check_lowered_keys(spec), written)))
    if spec["spec_version"] == "1.1":
        found = chain(found, check_craft(spec))
    return list(islice(found, MAX_FINDINGS))
