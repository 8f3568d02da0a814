"""Compiled policies, a fake compiler and scripted compiler runs."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import SecretStr

from peripety import engine
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.core.concurrency import closing
from peripety.core.config import Config
from peripety.core.mutation import Coverage, Mutant, MutantOutcome, MutationScore
from peripety.core.storage.database import Database
from peripety.engine.policies.types import Decision, ToolRequest
from peripety.errors import Finding, Severity
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.policy.authoring.compiler import PolicyCompiler
from peripety.policy.authoring.prompts import (
    JUDGEMENT_SCHEMA_NAME,
    PATCHES_SCHEMA_NAME,
    RULES_SCHEMA_NAME,
    SCENARIOS_SCHEMA_NAME,
)
from peripety.policy.authoring.run_context import InMemoryArtifactCache
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
from support.engine.policy_generators import random_policy, random_requests
from support.policy.models import FakeModel, below, generated_scenario, rule, told, tool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

    from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub
    from peripety.engine import Policy
    from peripety.gateway.types.request import GenerateRequest
    from peripety.policy.authoring.run_context import ArtifactCache
    from peripety.policy.compile_cache import PolicyCompilerProtocol
    from peripety.policy.events import CompileEvent
    from peripety.rpc.container import ServiceContainer


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


class FakeCompiler:
    """Tells every kind of event, and comes to the same result in the end.

    Args:
        end: what it comes to instead.
        version: of the program that it stands for.
        pause: waited for after the first event.

    Attributes:
        compiled: how often it began.
        left: how often it was left before its end.
        orders: what it was asked for.
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
        """What a result depends on."""
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


E = TypeVar("E")

POLICY = "Everything below /open is allowed, and nothing else."
ORDER = CompileOrder(POLICY, (tool("a"),), directed=False)
RIGHT = ({**rule("open", "allow", arguments=below("/open")), "principle": POLICY},)
FINE = (
    generated_scenario("inside", "allow", at="/open/x"),
    generated_scenario("outside", "deny", at="/other"),
)
SATISFIED: dict[str, Any] = {"satisfied": True, "attributions": [], "probes": []}


@dataclass
class Script:
    """What models answer, turn by turn under each schema; the last answer for ever.

    Attributes:
        rules: answers to who asks for rules: sequences of rules, or anything that a `FakeModel` says.
        scenarios: answers to who asks for scenarios.
        judgements: answers to who asks who is to blame.
        patches: answers to who asks for changes: sequences of operations, or anything.
    """

    rules: Sequence[Any] = (RIGHT,)
    scenarios: Sequence[Any] = (FINE,)
    judgements: Sequence[Any] = (SATISFIED,)
    patches: Sequence[Any] = ((),)
    asked: dict[str, int] = field(default_factory=dict)

    def __call__(self, request: GenerateRequest) -> Any:
        assert request.schema is not None
        name = request.schema.name
        answers = {
            RULES_SCHEMA_NAME: self.rules,
            SCENARIOS_SCHEMA_NAME: self.scenarios,
            JUDGEMENT_SCHEMA_NAME: self.judgements,
            PATCHES_SCHEMA_NAME: self.patches,
        }[name]
        number = self.asked.get(name, 0)
        self.asked[name] = number + 1
        answer = answers[min(number, len(answers) - 1)]
        if not isinstance(answer, tuple | list):
            return answer
        match name:
            case "policy_rules":
                return {"rules": [*answer]}
            case "policy_scenarios":
                return {"scenarios": [*map(told, answer)]}
            case _:
                return {"reasoning": "so be it", "operations": [*answer]}


def blames(description: str, blame: str, corrected: str | None = None, **more: Any) -> dict[str, Any]:
    """A judgement of one failure."""
    word = {"description": description, "blame": blame, "reasoning": "the judge says so"}
    if corrected is not None:
        word["corrected_decision"] = corrected
    return {"satisfied": False, "attributions": [word], "probes": [], **more}


@dataclass
class Ran:
    """What came of a run."""

    events: list[CompileEvent]
    model: FakeModel

    @property
    def last(self) -> Any:
        return self.events[-1]

    @property
    def compiled(self) -> PolicyCompiled:
        assert isinstance(self.last, PolicyCompiled), self.last
        return self.last

    @property
    def failed(self) -> PolicyCompileFailed:
        assert isinstance(self.last, PolicyCompileFailed), self.last
        return self.last

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def decided(self, kind: type[E]) -> list[E]:
        """The decisions of one kind on record."""
        return [entry.decision for entry in self.last.audit if isinstance(entry.decision, kind)]

    @property
    def codes(self) -> list[str]:
        return [finding.code for finding in self.last.findings]

    @property
    def rules(self) -> list[Mapping[str, Any]]:
        rules: list[Mapping[str, Any]] = json.loads(self.last.document)["rules"]
        return rules

    @property
    def names(self) -> list[str]:
        return [one.description for one in self.last.scenarios]

    @property
    def run(self) -> list[str]:
        """The scenarios that were run last, those too that turned out to add nothing."""
        return [result.scenario.description for result in self.of(ScenariosVerified)[-1].report.results]


async def ran(
    script: Script | FakeModel | None = None,
    order: CompileOrder = ORDER,
    artifacts: ArtifactCache | None = None,
    **changed: Any,
) -> Ran:
    """Compile an order, and see that the record and the progress are what they should be."""
    model = script if isinstance(script, FakeModel) else FakeModel(script or Script())
    compiler = PolicyCompiler(model, artifacts or InMemoryArtifactCache())
    async with closing(compiler.compile(replace(order, **changed))) as stream:
        done = Ran([event async for event in stream], model)
    fractions = [event.fraction for event in done.of(CompileProgress)]
    assert fractions == sorted(fractions)
    assert all(0 <= fraction <= 1 for fraction in fractions)
    assert [*done.last.audit] == done.of(AuditEntry)
    assert not model.running
    return done


def scenario(description: str, asked: ToolRequest, expected: str, **more: Any) -> TestScenario:
    return TestScenario(description, asked, Expectation(expected), **more)


def expecting(policy: Policy, *requests: ToolRequest) -> list[TestScenario]:
    """Scenarios that expect what the rules say, named `s0`, `s1` and so on."""
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


Json = dict[str, Any]

_LOOKED_AT = 40


@dataclass(frozen=True)
class TruePolicy:
    """A policy that somebody has in mind, with rules that are about one server each."""

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
        """What is written of it: a sentence for each rule."""
        return "\n".join(f"{rule['principle']} {json.dumps(rule['when'])}" for rule in self.spec["rules"])

    def order(self, **changed: Any) -> CompileOrder:
        """What to compile, so that it becomes rules."""
        inputs = {"invariants": tuple(self.spec["invariants"]), "lists": self.spec["lists"]}
        return CompileOrder(self.constitution, self.tools, **{**inputs, **changed})

    def rules(self, server: str) -> list[Json]:
        """The rules about a server, in order."""
        return [rule for rule in self.spec["rules"] if rule["when"]["servers"] == [server]]

    def expects(self, request: ToolRequest) -> Expectation:
        """What it has to say to a request."""
        return Expectation(self.compiled.decide(request).decision.value)


def plausible_suite(true: TruePolicy, random: Random, *, each: int = 2) -> list[TestScenario]:
    """What somebody writes who knows the policy and thinks of typical calls.

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
