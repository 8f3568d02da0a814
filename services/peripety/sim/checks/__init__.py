"""Static checks of a scenario, beyond its JSON Schema.

Each function receives parts of a document that is valid against the schema, and yields findings in document
order.
"""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from peripety.sim.checks.documents import check_document
from peripety.sim.checks.rules import check_rules
from peripety.sim.checks.world import World
from peripety.sim.schema import MAX_FINDINGS

if TYPE_CHECKING:
    from peripety.errors import Finding

__all__ = ["check_spec"]


def check_spec(spec: dict[str, Any]) -> list[Finding]:
    """Return the findings of a scenario that is valid against the schema, at most 50."""
    world = World(spec)
    return list(islice(chain(check_document(spec), check_rules(spec, world)), MAX_FINDINGS))
