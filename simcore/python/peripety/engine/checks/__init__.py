"""Static checks of a scenario, beyond its JSON Schema.

Each function receives parts of a document that is valid against the schema, and yields findings in document
order.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from peripety.engine.checks.document_checks import StateModel, check_document
from peripety.engine.checks.rule_checks import check_rules
from peripety.engine.checks.story_checks import check_story
from peripety.engine.schema_validation import MAX_FINDINGS

if TYPE_CHECKING:
    from peripety.errors import Finding


def check_spec(spec: dict[str, Any]) -> list[Finding]:
    """Return the findings of a scenario that is valid against the schema, at most 50."""
    world = StateModel(spec)
    found = chain(check_document(spec), check_rules(spec, world), check_story(spec, world))
    return list(islice(found, MAX_FINDINGS))
