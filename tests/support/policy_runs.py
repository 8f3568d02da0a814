"""Runs of the compiler with scripted models, and what came of them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from peripety.core.concurrency import closing
from peripety.policy.authoring.compiler import PolicyCompiler
from peripety.policy.authoring.prompts import (
    JUDGEMENT_SCHEMA_NAME,
    PATCHES_SCHEMA_NAME,
    RULES_SCHEMA_NAME,
    SCENARIOS_SCHEMA_NAME,
)
from peripety.policy.authoring.run_context import InMemoryArtifactCache
from peripety.policy.events import CompileProgress, PolicyCompileFailed, ScenariosVerified
from peripety.policy.types import AuditEntry, CompileOrder, PolicyCompiled
from support.policy_models import FakeModel, below, rule, scenario, told, tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.gateway.types.request import GenerateRequest
    from peripety.policy.authoring.run_context import ArtifactCache
    from peripety.policy.events import CompileEvent


E = TypeVar("E")

POLICY = "Everything below /open is allowed, and nothing else."
ORDER = CompileOrder(POLICY, (tool("a"),), directed=False)
RIGHT = ({**rule("open", "allow", arguments=below("/open")), "principle": POLICY},)
FINE = (scenario("inside", "allow", at="/open/x"), scenario("outside", "deny", at="/other"))
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
