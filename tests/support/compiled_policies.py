"""A small policy, what came of compiling it, and a store with a database of its own."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.core.mutation import Coverage, Mutant, MutantOutcome, MutationScore
from peripety.core.storage.database import Database
from peripety.engine.policies.types import Decision, ToolRequest
from peripety.errors import Finding, Severity
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.policy.store import PolicyStore
from peripety.policy.types import (
    AuditEntry,
    DiscardedScenario,
    Expectation,
    FaultAttribution,
    GenerationTurn,
    Judgement,
    PolicyCompiled,
    RulePatch,
    RulePatchKind,
    ScenarioCorrection,
    ScenarioOrigin,
    ScenarioResult,
    TestScenario,
    VerificationReport,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


ALLOWED = TestScenario(
    "a reads below /a",
    ToolRequest("alpha", "read", {"path": "/a/b", "size": 1.5}, ("first",)),
    Expectation.ALLOW,
    "it is meant to",
    ScenarioOrigin.HANDWRITTEN,
    "reads",
    "mine",
)
DENIED = TestScenario("nobody reads below /e", ToolRequest("alpha", "read", {"path": "/e"}), Expectation.DENY)


def policy_document(**more: Any) -> bytes:
    """Whoever reads below /a may; removing is escalated, and what lies below /z is nobody's."""
    path = {"argument_roles": ["source_path"], "kind": "path"}
    return engine.canonicalize(
        {
            "policy_version": "1.0",
            "id": "gauge",
            "name": "Gauge",
            "tools": [
                {
                    "server_name": "alpha",
                    "tool_name": name,
                    "argument_roles": [{"path": "/path", "role": "source_path"}],
                }
                for name in ("read", "remove")
            ],
            "invariants": [
                {
                    "id": "structural-z",
                    "when": {"arguments": [path | {"among": ["/z"]}]},
                    "then": "deny",
                    "reason": "nothing below /z is touched",
                },
            ],
            "rules": [
                {
                    "id": "reads",
                    "when": {"tools": ["read"], "arguments": [path | {"among": ["/a"]}]},
                    "then": "allow",
                    "reason": "reading below /a is free",
                },
                {
                    "id": "removes",
                    "when": {"tools": ["remove"]},
                    "then": "escalate",
                    "reason": "removing needs a person",
                },
            ],
        }
        | more,
    )


def compiled_policy(**more: Any) -> PolicyCompiled:
    """What came of compiling it, with something of everything that there may be."""
    policy = engine.compile_policy(policy_document(**more))
    scenarios = (ALLOWED, DENIED)
    survivor = Mutant("m1", "drop_rule", "/rules/1", b"{}", None, MutantOutcome.SURVIVED, ("x",))
    spent = UsageTotal(2, Usage(input_tokens=10, output_tokens=5), cost=None)
    decisions = (
        ScenarioCorrection(DENIED.description, Expectation.ESCALATE, Expectation.DENY, "nothing allows it"),
        DiscardedScenario(DENIED, "structural-z", Decision.DENY),
        RulePatch(RulePatchKind.ADD, "reads", None, policy.rules[1], 0, "it was missing"),
        Judgement(DENIED.description, FaultAttribution.BOTH, "neither fits", overruled=True),
    )
    return PolicyCompiled(
        policy.document,
        scenarios,
        VerificationReport(
            tuple(ScenarioResult(one, policy.decide(one.request), "removes") for one in scenarios),
            (Coverage("rule", 1, 2, ("/rules/1",), ("/rules/0",)),),
            MutationScore(3, 1, 0, (survivor,)),
        ),
        tuple(AuditEntry(1, "engine", decision, 1_700_000_000.5) for decision in decisions),
        spent,
        (GenerationTurn(1, 2, repaired=True, spent=spent),),
        (Finding("CODE", "/é", "a message", Severity.WARNING),),
    )


def named(name: str) -> bytes:
    """The same policy with other content, for each name."""
    return policy_document(name=name)


def decided(policy: bytes, **request: Any) -> engine.DecisionResult:
    """What a policy says, asked without any service."""
    return engine.compile_policy(policy).decide(ToolRequest(**request))


def as_json(value: Any) -> bytes:
    """A value as a caller may write it."""
    return json.dumps(value).encode()


@asynccontextmanager
async def opened_store(database_url: str) -> AsyncIterator[tuple[PolicyStore, Database]]:
    """A store in a database."""
    database = await Database.open(database_url)
    try:
        yield PolicyStore(database), database
    finally:
        await database.close()
