"""Scripted models that write and judge policies, and compiler runs with them."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from peripety.core.concurrency import closing
from peripety.engine.policies.types import ToolRequest
from peripety.llmsim.script.types import ScriptResponse
from peripety.llmsim.server.runner import serve_in_thread
from peripety.llmsim.types import SimRole, SimStopReason
from peripety.policy.authoring.compiler import PolicyCompiler
from peripety.policy.authoring.prompts import (
    JUDGE_TASK,
    PATCHES_TASK,
    RULES_TASK,
    SCENARIOS_TASK,
    load_prompt,
)
from peripety.policy.authoring.run_context import InMemoryArtifactCache
from peripety.policy.events import CompileProgress, PolicyCompileFailed, ScenariosVerified
from peripety.policy.types import (
    AnnotatedTool,
    AuditEntry,
    CompileOrder,
    Expectation,
    PolicyCompiled,
    ScenarioOrigin,
    TestScenario,
)
from support.gateway.fake_gateway import FakeGateway
from support.gateway.providers import PROVIDERS, gateway_of
from support.llmsim.simulator import Answering
from support.policy.policies import plausible_suite

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from peripety.gateway.types.request import GenerateRequest
    from peripety.llmsim.types import SimRequest
    from peripety.policy.authoring.run_context import ArtifactCache
    from peripety.policy.events import CompileEvent
    from support.policy.policies import TruePolicy


_TASKS = (RULES_TASK, SCENARIOS_TASK, JUDGE_TASK, PATCHES_TASK)
_HEADINGS = {load_prompt(task).partition(" (")[0]: task for task in _TASKS}
"""The headings of the tasks, which begin the first messages of their conversations."""


def task_of(request: GenerateRequest) -> str:
    """The task of a conversation, by the heading of its first message."""
    return next(task for heading, task in _HEADINGS.items() if heading in request.messages[0].text)


def about(request: GenerateRequest) -> dict[str, Any]:
    """The material of a conversation."""
    assert request.system is not None
    material: dict[str, Any] = json.loads(request.system.rpartition("\n")[2])
    return material


def tool(name: str, server: str = "alpha", **more: Any) -> AnnotatedTool:
    """A tool with a path and an amount."""
    schema = {
        "type": "object",
        "properties": {"at": {"type": "string"}, "amount": {"type": "integer"}},
        "additionalProperties": False,
    }
    return AnnotatedTool(server, name, input_schema=schema, argument_roles=(("/at", "place"),), **more)


def generated_scenario(
    description: str,
    expected: Expectation | str = Expectation.DENY,
    name: str = "a",
    source: ScenarioOrigin = ScenarioOrigin.GENERATED,
    **arguments: Any,
) -> TestScenario:
    """A scenario for a tool of the server `alpha`."""
    expectation = Expectation(expected)
    return TestScenario(description, ToolRequest("alpha", name, arguments), expectation, "because", source)


def told(one: TestScenario) -> dict[str, Any]:
    """A scenario as a model writes it."""
    return {
        "description": one.description,
        "request": {
            "server_name": one.request.server_name,
            "tool_name": one.request.tool_name,
            "arguments": dict(one.request.arguments),
        },
        "expected_decision": one.expected_decision.value,
        "reasoning": one.reasoning,
    }


def rule(rule_id: str, then: str, **when: Any) -> dict[str, Any]:
    """A rule as a model writes it."""
    return {"id": rule_id, "when": when, "then": then, "reason": f"{rule_id} says so"}


def below(*places: str) -> list[dict[str, Any]]:
    """Matchers that hold for places below others."""
    return [{"argument_roles": ["place"], "kind": "path", "among": [*places]}]


E = TypeVar("E")

POLICY = "Everything below /open is allowed, and nothing else."
ORDER = CompileOrder(POLICY, (tool("a"),), directed=False, allow_partial=True)
RIGHT = ({**rule("open", "allow", arguments=below("/open")), "principle": POLICY},)
FINE = (
    generated_scenario("inside", "allow", at="/open/x"),
    generated_scenario("outside", "deny", at="/other"),
)
SATISFIED: dict[str, Any] = {"satisfied": True, "attributions": [], "probes": []}


@dataclass
class Script:
    """Answers of models, turn by turn for each task; the last answer repeats for ever.

    Attributes:
        rules: answers to requests for rules: sequences of rules, or any answer of a `FakeGateway`.
        scenarios: answers to requests for scenarios.
        judgements: answers to requests for fault attributions.
        patches: answers to requests for changes: sequences of operations, or anything.
    """

    rules: Sequence[Any] = (RIGHT,)
    scenarios: Sequence[Any] = (FINE,)
    judgements: Sequence[Any] = (SATISFIED,)
    patches: Sequence[Any] = ((),)
    asked: dict[str, int] = field(default_factory=dict)

    def __call__(self, request: GenerateRequest) -> Any:
        name = task_of(request)
        answers = {
            RULES_TASK: self.rules,
            SCENARIOS_TASK: self.scenarios,
            JUDGE_TASK: self.judgements,
            PATCHES_TASK: self.patches,
        }[name]
        number = self.asked.get(name, 0)
        self.asked[name] = number + 1
        answer = answers[min(number, len(answers) - 1)]
        if not isinstance(answer, tuple | list):
            return answer
        match name:
            case "rules":
                return {"rules": [*answer]}
            case "scenarios":
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
    """The result of a run."""

    events: list[CompileEvent]
    model: FakeGateway

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

    def asked(self, task: str) -> list[GenerateRequest]:
        """The requests of one task."""
        return [request for request in self.model.requests if task_of(request) == task]

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
    script: Script | FakeGateway | None = None,
    order: CompileOrder = ORDER,
    artifacts: ArtifactCache | None = None,
    **changed: Any,
) -> Ran:
    """Compile an order, and see that the record and the progress are what they should be."""
    model = script if isinstance(script, FakeGateway) else FakeGateway(script or Script())
    compiler = PolicyCompiler(model, artifacts or InMemoryArtifactCache())
    async with closing(compiler.compile(replace(order, **changed))) as stream:
        done = Ran([event async for event in stream], model)
    fractions = [event.fraction for event in done.of(CompileProgress)]
    assert fractions == sorted(fractions)
    assert all(0 <= fraction <= 1 for fraction in fractions)
    assert [*done.last.audit] == done.of(AuditEntry)
    assert not model.running
    return done


Json = dict[str, Any]

_FEW = 3
_MOST_TOOLS_AT_ONCE = 3
_MATERIAL = '{"constitution":'
_AGAIN = "The existing rules do not meet"


class Habit(Enum):
    """The way a model writes scenarios."""

    PERFECT = "perfect"
    LAZY = "lazy"
    """One for each tool, with the decision that most calls of it get."""
    LYING = "lying"
    """Three of ten expect a decision that differs from the policy's."""
    TRUNCATING = "truncating"
    """The first answer to each question breaks off, and no answer about many tools ever fits."""
    REPEATING = "repeating"
    """Twice in an answer, and the same ones for every request."""


@dataclass(frozen=True)
class ScriptedModel:
    """Scripted model that writes, judges and repairs the rules and scenarios of a known policy.

    Its answers depend only on the prompt, so the order of prompts does not matter.

    Attributes:
        true: the policy.
        habit: how it writes scenarios.
        judge_lies: probability that it blames the wrong side, for each attribution as a judge.
        planted: rules, by id, that it gets wrong at first, each with its wrong decision.
        can_repair: True if it can repair its rules.
        seed: the seed of its random choices.
    """

    true: TruePolicy
    habit: Habit = Habit.PERFECT
    judge_lies: float = 0.0
    planted: Mapping[str, str] = field(default_factory=dict)
    can_repair: bool = True
    seed: int = 0

    def __call__(self, request: SimRequest) -> ScriptResponse:
        """Return the answer to a question."""
        about = _material(request)
        match request.messages[0].text.partition(" (")[0]:
            case "# Rule author":
                is_again = _AGAIN in request.messages[0].text
                planted = {} if is_again and self.can_repair else self.planted
                return _said({"rules": self._rules(about["tools"], planted)})
            case "# Scenario author":
                return self._scenarios(about["tools"], request)
            case "# Judge of disagreements":
                return _said(self._judgement(request))
            case "# Mender of rules":
                return _said(self._operations(about["tools"], request))
            case other:
                raise AssertionError(other)

    # --- rules ---

    def _rules(self, tools: Sequence[Json], planted: Mapping[str, str]) -> list[Json]:
        servers = dict.fromkeys(tool["server_name"] for tool in tools)
        of_server = {server: [tool for tool in tools if tool["server_name"] == server] for server in servers}
        rules = (
            told_rule(rule, own) for server, own in of_server.items() for rule in self.true.rules(server)
        )
        return [rule | {"then": planted.get(rule["id"], rule["then"])} for rule in rules if rule is not None]

    def _operations(self, tools: Sequence[Json], request: SimRequest) -> Json:
        """Return the operations that repair the rules, if it can repair them."""
        now = {rule["principle"]: rule for rule in _asked(request)["rules"]}
        operations: list[Json] = []
        for wanted in self._rules(tools, {}) if self.can_repair else ():
            was = now.get(wanted["principle"])
            if was is not None and was["then"] != wanted["then"]:
                rule = wanted | {"id": was["id"]}
                operations.append({"op": "update", "rule_id": was["id"], "rule": rule})
        return {"reasoning": "The written policy says so.", "operations": operations}

    # --- scenarios ---

    @cached_property
    def _suite(self) -> list[TestScenario]:
        return plausible_suite(self.true, Random(self.seed))

    @cached_property
    def _afterthoughts(self) -> list[TestScenario]:
        return plausible_suite(self.true, Random(self.seed + 1))

    def _scenarios(self, tools: Sequence[Json], request: SimRequest) -> ScriptResponse:
        names = {(tool["server_name"], tool["tool_name"]) for tool in tools}
        is_first = sum(message.role is SimRole.USER for message in request.messages) == 1
        is_repair = _is_repair(request)
        first = is_first or is_repair or self.habit is Habit.REPEATING
        suite = self._suite if first else self._afterthoughts
        about = [one for one in suite if (one.request.server_name, one.request.tool_name) in names]
        chosen = self._chosen(about if first else about[:_FEW])
        response = _said({"scenarios": [self._written(one, first) for one in chosen]})
        cut = len(names) > _MOST_TOOLS_AT_ONCE or not is_repair
        if self.habit is Habit.TRUNCATING and cut:
            return ScriptResponse(response.text[: len(response.text) // 2], stop=SimStopReason.LENGTH)
        return response

    def _chosen(self, suite: Sequence[TestScenario]) -> Sequence[TestScenario]:
        match self.habit:
            case Habit.LAZY:
                return [*{(one.request.server_name, one.request.tool_name): one for one in suite}.values()]
            case Habit.REPEATING:
                return [*suite, *suite]
            case _:
                return suite

    def _written(self, scenario: TestScenario, first: bool) -> Json:
        request = scenario.request
        expected = scenario.expected_decision.value
        if self.habit is Habit.LYING and self._lies(scenario.description, 0.3):
            expected = next(one for one in ("allow", "deny", "escalate") if one != expected)
        return {
            "description": scenario.description + ("" if first else ", again"),
            "request": {
                "server_name": request.server_name,
                "tool_name": request.tool_name,
                "arguments": request.arguments,
                "roles": [*request.roles],
            },
            "expected_decision": expected,
            "reasoning": "The written policy says so.",
        }

    # --- judging ---

    def _judgement(self, request: SimRequest) -> Json:
        failed = _asked(request)["failed"]
        round_number = len(request.messages)
        return {
            "satisfied": not failed,
            "attributions": [self._attribution(one, round_number) for one in failed],
            "probes": [],
        }

    def _attribution(self, failed: Json, round_number: int) -> Json:
        asked = failed["request"]
        right = self.true.expects(
            ToolRequest(
                asked["server_name"],
                asked["tool_name"],
                asked["arguments"],
                tuple(asked.get("roles", ())),
            ),
        )
        said = {"description": failed["description"], "reasoning": "The written policy says so."}
        expected = Expectation(failed["expected_decision"])
        if self._lies(f"{failed['description']} {round_number}", self.judge_lies):
            if expected is Expectation.ALLOW:
                return said | {"blame": "rule"}
            return said | {"blame": "scenario", "corrected_decision": "allow"}
        if right is expected:
            return said | {"blame": "rule"}
        blame = "scenario" if right.value == failed["decided"]["decision"] else "both"
        return said | {"blame": blame, "corrected_decision": right.value}

    def _lies(self, about: str, share: float) -> bool:
        return Random(f"{self.seed} {about}").random() < share


def told_rule(rule: Json, tools: Iterable[Json]) -> Json | None:
    """Return a rule as a model writes it for some tools of its server; None if it does not apply to them."""
    by_name = {tool["tool_name"]: tool for tool in tools}
    roles = {one["role"] for tool in by_name.values() for one in tool.get("argument_roles", ())}
    when = {name: value for name, value in rule["when"].items() if name != "servers"}
    when["tools"] = [name for name in when.get("tools", by_name) if name in by_name]
    if "argument_roles" in when:
        when["argument_roles"] = [role for role in when["argument_roles"] if role in roles]
    matchers = [
        matcher | {"argument_roles": [role for role in matcher["argument_roles"] if role in roles]}
        for matcher in when.get("arguments", ())
    ]
    if matchers:
        when["arguments"] = matchers
    wanted = [when["tools"], when.get("argument_roles", [""]), *(one["argument_roles"] for one in matchers)]
    if not all(wanted):
        return None
    return {**{name: rule[name] for name in ("id", "principle", "then", "reason")}, "when": when}


def _said(answer: Json) -> ScriptResponse:
    return ScriptResponse(json.dumps(answer, ensure_ascii=False))


def _material(request: SimRequest) -> Json:
    """Return the material of the question: the line of the system text that begins with the written
    policy.
    """
    told: Json = json.loads(next(line for line in request.system.splitlines() if line.startswith(_MATERIAL)))
    return told


def _asked(request: SimRequest) -> Any:
    """The question, which is the last message that is a JSON object."""
    for message in reversed(request.messages):
        lines = message.text.splitlines() if message.role is SimRole.USER else ()
        for line in lines:
            if line.startswith("{"):
                return json.JSONDecoder().raw_decode(line)[0]
    raise AssertionError(request.messages)


def _is_repair(request: SimRequest) -> bool:
    """Return True if the request repeats a question because the last answer was invalid."""
    answers = [message.text for message in request.messages if message.role is SimRole.ASSISTANT]
    try:
        json.loads(answers[-1] if answers else "{}")
    except ValueError:
        return True
    return False


@dataclass(frozen=True)
class Workshop:
    """A compiler, and its model."""

    compiler: PolicyCompiler
    model: Answering

    async def compiled(self, order: CompileOrder) -> list[CompileEvent]:
        """Everything that happens."""
        async with closing(self.compiler.compile(order)) as events:
            return [event async for event in events]

    async def outcome(self, order: CompileOrder) -> PolicyCompiled | PolicyCompileFailed:
        """Return the result of a compilation."""
        last = (await self.compiled(order))[-1]
        assert isinstance(last, PolicyCompiled | PolicyCompileFailed), last
        return last


@asynccontextmanager
async def workshop(answer: Callable[[SimRequest], ScriptResponse]) -> AsyncIterator[Workshop]:
    """Open a compiler with a scripted model, until the block ends."""
    model = Answering(answer)
    with serve_in_thread(model) as upstream:
        async with gateway_of(PROVIDERS[0], upstream.url) as gateway:
            yield Workshop(PolicyCompiler(gateway, InMemoryArtifactCache()), model)
    model.close()
