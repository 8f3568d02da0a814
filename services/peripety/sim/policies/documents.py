"""Parsing, validation and compilation of a policy document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import Finding, Severity, SpecError
from peripety.sim._backend import CORE
from peripety.sim._values import loads
from peripety.sim.documents import canonical_document
from peripety.sim.policies.checks import check_policy
from peripety.sim.policies.policy import Policy
from peripety.sim.schema import check
from peripety.sim.schemas import POLICY_SPEC, schema_document

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.sim.policies.types import Decided, ToolRequest

__all__ = ["compile_policy", "decide", "decide_many", "validate_policy"]


def validate_policy(document: bytes | str) -> list[Finding]:
    """Return all findings of a policy document; one without errors can be compiled.

    The stages are the strict parser, the JSON Schema and the static checks. Each runs only if the previous
    one found no error.
    """
    try:
        spec = loads(canonical_document(document))
    except SpecError as error:
        return list(error.findings)
    return check(schema_document(POLICY_SPEC), spec) or check_policy(spec)


def compile_policy(document: bytes | str) -> Policy:
    """Compile a policy document.

    Raises:
        SpecError: with the findings of `validate_policy`.
    """
    errors = [finding for finding in validate_policy(document) if finding.severity is Severity.ERROR]
    if errors:
        raise SpecError(f"the policy has {len(errors)} error(s); the first: {errors[0].message}", errors)
    accepted = canonical_document(document)
    return Policy(accepted, CORE.policy(accepted))


def decide(policy: Policy, request: ToolRequest) -> Decided:
    """Decide a request; see `Policy.decide`."""
    return policy.decide(request)


def decide_many(policy: Policy, requests: Sequence[ToolRequest]) -> list[Decided]:
    """Decide many requests; see `Policy.decide_many`."""
    return policy.decide_many(requests)
