"""Compiled policies, plausible test suites, and a fake compiler behind the policy service."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from peripety import engine
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.core.config import Config
from peripety.core.mutation_testing import Coverage, Mutant, MutantOutcome, MutationScore
from peripety.core.storage.database import Database
from peripety.engine.policies.types import Decision, ToolRequest
from peripety.errors import Finding, Severity
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.policy.compile_cache import ArtifactStore
from peripety.policy.events import (
    CompileProgress,
    PolicyCompileFailed,
    RulesWritten,
    ScenariosVerified,
    ScenariosWritten,
)
from peripety.policy.setup import register_service_with
from peripety.policy.store import PolicyStore
from peripety.policy.types import (
    AnnotatedTool,
    AuditEntry,
    CompileOrder,
    CompilePhase,
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
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered
from support.engine.policies import allow, deny, escalate, matcher, policy_spec, tool
from support.engine.policy_generators import random_policy, random_requests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub
    from peripety.engine import Policy
    from peripety.policy.compile_cache import PolicyCompilerProtocol
    from peripety.policy.events import CompileEvent
    from peripety.rpc.container import ServiceContainer


Json = dict[str, Any]

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
    """Return a policy: reading below /a is allowed, removing is escalated, everything below /z is denied."""

    def below(place: str) -> list[Json]:
        return [matcher("source_path", "path", place)]

    return engine.canonicalize(
        policy_spec(
            id="gauge",
            name="Gauge",
            tools=[
                tool(name, "alpha", argument_roles={"/path": "source_path"}) for name in ("read", "remove")
            ],
            invariants=[
                deny("structural-z", arguments=below("/z")) | {"reason": "nothing below /z is touched"},
            ],
            rules=[
                allow("reads", tools=["read"], arguments=below("/a"))
                | {"reason": "reading below /a is free"},
                escalate("removes", tools=["remove"]) | {"reason": "removing needs a person"},
            ],
        )
        | more,
    )


def compiled_policy(**more: Any) -> PolicyCompiled:
    """Return the result of compiling it, with at least one entry in every part."""
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
    """Return the decision of a policy, without a service."""
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


class FakeCompiler:
    """Fake compiler that sends every kind of event and always returns the same result.

    Args:
        end: a result that replaces the default one.
        version: version of the compiler that it replaces.
        pause: awaited after the first event.

    Attributes:
        compiled: number of compilations started.
        left: number of compilations cancelled before the end.
        orders: the orders that it received.
        idle: set while it does nothing.
    """

    def __init__(
        self,
        end: PolicyCompiled | PolicyCompileFailed | Exception | None = None,
        version: str = "1",
        pause: asyncio.Event | None = None,
    ) -> None:
        self.compiled = 0
        self.left = 0
        self.orders: list[CompileOrder] = []
        self.idle = asyncio.Event()
        self.idle.set()
        self._end = end or compiled_policy()
        self._version = version
        self._pause = pause

    def fingerprint(self, order: CompileOrder) -> str:
        """Return the key of everything that a result depends on."""
        return sha256(f"{self._version}{order}".encode()).hexdigest()

    async def compile(self, order: CompileOrder) -> AsyncIterator[CompileEvent]:
        """Every event that there is."""
        self.compiled += 1
        self.orders.append(order)
        self.idle.clear()
        try:
            async for event in self._events():
                yield event
        except (GeneratorExit, asyncio.CancelledError):
            self.left += 1
            raise
        finally:
            self.idle.set()

    async def _events(self) -> AsyncIterator[CompileEvent]:
        result = compiled_policy()
        yield CompileProgress(CompilePhase.RULES, 0, "rules are written", 0.1)
        if self._pause is not None:
            await self._pause.wait()
        yield RulesWritten(policy_document(), result.findings)
        yield ScenariosWritten(result.scenarios, result.turns[0])
        yield ScenariosVerified(0, result.verification)
        for entry in result.audit:
            yield entry
        if isinstance(self._end, Exception):
            raise self._end
        yield self._end


def scenario(description: str, asked: ToolRequest, expected: str, **more: Any) -> TestScenario:
    return TestScenario(description, asked, Expectation(expected), **more)


def expecting(policy: Policy, *requests: ToolRequest) -> list[TestScenario]:
    """Return scenarios that expect the decisions of the policy, named `s0`, `s1` and so on."""
    return [
        TestScenario(f"s{number}", asked, Expectation(policy.decide(asked).decision.value))
        for number, asked in enumerate(requests)
    ]


@asynccontextmanager
async def serving_policies(
    database_url: str,
    compiler: PolicyCompilerProtocol,
    **settings: Any,
) -> AsyncIterator[PolicyServiceAsyncStub]:
    """Serve them and connect."""

    async def bind(wiring: ServiceContainer) -> None:
        await register_service_with(wiring, compiler, ArtifactStore(await wiring.get_database(), "fake"))

    config = Config(database_url=SecretStr(database_url), listen="127.0.0.1:0", **settings)
    async with serve_registered(config, [bind]) as app, open_channel(app.address) as channel:
        yield PolicyServiceStub(channel)


_LOOKED_AT = 40


@dataclass(frozen=True)
class TruePolicy:
    """An intended policy, with rules that are about one server each."""

    spec: Json

    @classmethod
    def made_up(cls, seed: int, shape: str = "by_server") -> TruePolicy:
        """One from a seed."""
        return cls(random_policy(Random(seed), shape))

    @cached_property
    def compiled(self) -> engine.Policy:
        """The same, to decide by."""
        return engine.compile_policy(json.dumps(self.spec))

    @property
    def tools(self) -> tuple[AnnotatedTool, ...]:
        """The tools that it is about."""
        return tuple(
            AnnotatedTool(
                tool["server_name"],
                tool["tool_name"],
                tool["description"],
                tool["input_schema"],
                tuple((each["path"], each["role"]) for each in tool["argument_roles"]),
                tool.get("read_only", False),
                tool.get("destructive", False),
            )
            for tool in self.spec["tools"]
        )

    @property
    def constitution(self) -> str:
        """Return the written policy: a sentence for each rule."""
        return "\n".join(f"{rule['principle']} {json.dumps(rule['when'])}" for rule in self.spec["rules"])

    def order(self, **changed: Any) -> CompileOrder:
        """Return the order to compile it into rules."""
        inputs = {
            "invariants": tuple(self.spec["invariants"]),
            "lists": self.spec["lists"],
            "allow_partial": True,
        }
        return CompileOrder(self.constitution, self.tools, **{**inputs, **changed})

    def rules(self, server: str) -> list[Json]:
        """The rules about a server, in order."""
        return [rule for rule in self.spec["rules"] if rule["when"]["servers"] == [server]]

    def expects(self, request: ToolRequest) -> Expectation:
        """Return the intended decision about a request."""
        return Expectation(self.compiled.decide(request).decision.value)


def plausible_suite(true: TruePolicy, random: Random, *, each: int = 2) -> list[TestScenario]:
    """Return scenarios of an author who knows the policy and thinks of typical calls.

    For each tool some calls of every decision, and one for each rule about it that decides a typical call.
    """
    return [
        TestScenario(
            f"{request.server_name} {request.tool_name}, call {number}",
            request,
            true.expects(request),
        )
        for tool in true.spec["tools"]
        for number, request in enumerate(_typical(true, tool, random, each))
    ]


def _typical(true: TruePolicy, tool: Json, random: Random, each: int) -> Iterable[ToolRequest]:
    asked = random_requests(random, {"tools": [tool]}, _LOOKED_AT)
    chosen: dict[str, ToolRequest] = {}
    for request, decided in zip(asked, true.compiled.decide_many(asked), strict=True):
        if decided.by_invariant:
            continue
        for key in _thought_of(decided, each):
            if key not in chosen:
                chosen[key] = request
                break
    return chosen.values()


def _thought_of(decided: engine.DecisionResult, each: int) -> Iterator[str]:
    yield decided.rule_id or "no rule"
    yield from (f"{decided.decision.value} {number}" for number in range(each))
