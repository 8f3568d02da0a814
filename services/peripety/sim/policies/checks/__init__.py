"""Static checks of a policy, beyond its JSON Schema.

Each function receives parts of a document that is valid against the schema, and yields findings.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from peripety.errors import Severity
from peripety.sim.policies.checks.lists import NamedLists, check_lists
from peripety.sim.policies.checks.rules import check_rules
from peripety.sim.policies.checks.tools import Tools, check_tools
from peripety.sim.schema import MAX_FINDINGS

if TYPE_CHECKING:
    from peripety.errors import Finding

__all__ = ["check_policy"]


def check_policy(spec: dict[str, Any]) -> list[Finding]:
    """Return the findings of a policy that is valid against the schema.

    There are at most 50, errors before warnings.
    """
    tools, lists = Tools(spec["tools"]), NamedLists(spec.get("lists", {}))
    errors: list[Finding] = []
    warnings: list[Finding] = []
    for finding in chain(check_tools(spec["tools"]), check_lists(lists), check_rules(spec, tools, lists)):
        (errors if finding.severity is Severity.ERROR else warnings).append(finding)
        if len(errors) == MAX_FINDINGS:
            break
    return [*errors, *warnings][:MAX_FINDINGS]
