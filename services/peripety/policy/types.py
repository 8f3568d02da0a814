"""Types of policies: tools, test scenarios, reports, audit log, compile orders and compile events."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from peripety.engine.policies.types import Decision, DecisionResult, ToolRequest
from peripety.gateway.types.request import Budget

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from peripety.core.mutation_testing import Coverage, Mutant, MutationScore
    from peripety.errors import Finding
    from peripety.gateway.types.response import UsageTotal


class Expectation(Enum):
    """The expected decision of a scenario."""

    ALLOW = "allow"
    DENY = "deny"
    ESCALATE = "escalate"
    NOT_ALLOW = "not_allow"
    """Deny or escalate."""

    def is_met_by(self, decision: Decision) -> bool:
        """Return True if a decision fulfils the expectation."""
        if self is Expectation.NOT_ALLOW:
            return decision is not Decision.ALLOW
        return self is Expectation(decision.value)


class ScenarioOrigin(Enum):
    """The origin of a scenario."""

    GENERATED = "generated"
    """A model wrote it."""
    HANDWRITTEN = "handwritten"
    """A person wrote it. It is never changed, removed or replaced."""
    PROBE = "probe"
    """The judge wrote it to test a doubt."""
    DIRECTED = "directed"
    """The engine generated it for a coverage gap. It expects the decision of the rules."""


@dataclass(frozen=True, slots=True)
class AnnotatedTool:
    """A tool that a policy applies to.

    Attributes:
        server_name: the server that offers it.
        tool_name: its name.
        description: its purpose; may be empty.
        input_schema: JSON Schema (2020-12) of its arguments; None if unknown.
        argument_roles: JSON Pointers into the arguments, each with the role of the value.
        read_only: True if it changes nothing.
        destructive: True if its effect cannot be undone.
    """

    server_name: str
    tool_name: str
    description: str = ""
    input_schema: Mapping[str, Any] | None = None
    argument_roles: tuple[tuple[str, str], ...] = ()
    read_only: bool = False
    destructive: bool = False


@dataclass(frozen=True, slots=True)
class TestScenario:
    """A request with the expected decision.

    Attributes:
        description: its purpose; unique in its suite.
        request: the request.
        expected_decision: the expected decision.
        reasoning: the reason for the expectation.
        source: its origin.
        rule_id: the rule that it tests; may be empty.
        scenario_id: an id from its author; may be empty.
    """

    __test__ = False  # pytest must not collect it

    description: str
    request: ToolRequest
    expected_decision: Expectation
    reasoning: str = ""
    source: ScenarioOrigin = ScenarioOrigin.GENERATED
    rule_id: str = ""
    scenario_id: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioCorrection:
    """A correction of the expectation of a scenario.

    Attributes:
        scenario_description: the scenario.
        original_decision: the expectation before.
        corrected_decision: the correct expectation.
        corrected_reasoning: the reason.
    """

    scenario_description: str
    original_decision: Expectation
    corrected_decision: Expectation
    corrected_reasoning: str


@dataclass(frozen=True, slots=True)
class DiscardedScenario:
    """A scenario that no rules can meet, or that no caller can send.

    Attributes:
        scenario: the scenario.
        rule: the invariant that decides its request, `argument-schema` for invalid arguments, or `withdrawn`
            if its author names no sentence for it.
        actual: the fixed decision.
    """

    scenario: TestScenario
    rule: str
    actual: Decision


@dataclass(frozen=True, slots=True)
class ContestedScenario:
    """A scenario that expects a call to be stopped, although its judge reads the policy as allowing it.

    Attributes:
        scenario: the scenario.
        reasoning: the reason of the judge.
    """

    scenario: TestScenario
    reasoning: str


@dataclass(frozen=True, slots=True)
class ScenarioFeedback:
    """Feedback to the author of scenarios after verification.

    Attributes:
        corrections: scenarios with a wrong expectation, which are already corrected.
        discarded: scenarios that conflict with an invariant or with the schema of their tool.
        probes: requests that no scenario covers.
        contested: scenarios that their author has to withdraw, or to justify with a sentence of the policy.
    """

    corrections: tuple[ScenarioCorrection, ...] = ()
    discarded: tuple[DiscardedScenario, ...] = ()
    probes: tuple[TestScenario, ...] = ()
    contested: tuple[ContestedScenario, ...] = ()


# ---- Results of verification and analysis.


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """The result of one scenario.

    Attributes:
        scenario: the scenario.
        actual: the decision of the rules.
        masked_rule_id: the rule that the scenario tests, if that rule applies but an earlier one decided;
            empty otherwise.
    """

    scenario: TestScenario
    actual: DecisionResult
    masked_rule_id: str = ""

    @property
    def passed(self) -> bool:
        """True if the rules decided as expected."""
        return self.scenario.expected_decision.is_met_by(self.actual.decision)


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """The results of all scenarios, with coverage and mutation score.

    Attributes:
        results: one for each scenario, in order.
        coverage: the coverage by kind: `rule`, `condition_decision` and `boundary`.
        mutation: the mutation score; None if it was not requested.
    """

    results: tuple[ScenarioResult, ...]
    coverage: tuple[Coverage, ...] = ()
    mutation: MutationScore | None = None

    @property
    def failures(self) -> tuple[ScenarioResult, ...]:
        """The results of the failed scenarios."""
        return tuple(result for result in self.results if not result.passed)


class RuleIssueKind(Enum):
    """The kind of a lint issue of a rule."""

    DEAD = "dead"
    """No request matches it."""
    SHADOWED = "shadowed"
    """Every request that matches it is decided by an earlier rule."""
    REDUNDANT = "redundant"
    """Without it every decision would be the same."""
    OVERRIDDEN = "overridden"
    """An invariant decides every request that matches it."""


@dataclass(frozen=True, slots=True)
class RuleIssue:
    """A lint issue of a rule.

    Attributes:
        kind: the kind of issue.
        rule_id: the rule.
        caused_by: the rules or invariants that cause it.
        witness: a request that shows it, confirmed on the engine; None if none was found.
        message: one sentence for display.
    """

    kind: RuleIssueKind
    rule_id: str
    caused_by: tuple[str, ...]
    witness: ToolRequest | None
    message: str


@dataclass(frozen=True, slots=True)
class DecisionChange:
    """A request that two policies decide differently.

    Attributes:
        witness: the request, confirmed on the engine for both.
        before: the decision of the old policy.
        after: the decision of the new policy.
    """

    witness: ToolRequest
    before: DecisionResult
    after: DecisionResult


class RulePatchKind(Enum):
    """The kind of a change of a rule."""

    UPDATE = "update"
    ADD = "add"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class RulePatch:
    """One change of the rules.

    Attributes:
        kind: update, add or delete.
        rule_id: the rule.
        before: the rule before; None for an added rule.
        after: the rule after; None for a deleted rule.
        position: index of the rule, from 0; the former one for a deleted rule.
        reasoning: the reason.
    """

    kind: RulePatchKind
    rule_id: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    position: int
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class PolicyDifference:
    """The difference of two policies.

    Attributes:
        equivalent: True if equal decisions for every request are proved.
        changes: examples, one for each pair of rules that decide differently; newly allowed requests first.
        rule_changes: the changes of the rules.
        findings: warnings about undecided parts.
    """

    equivalent: bool
    changes: tuple[DecisionChange, ...]
    rule_changes: tuple[RulePatch, ...]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class MutantBlock:
    """A block of evaluated mutants.

    Attributes:
        mutants: the mutants.
        total: the number of mutants in all.
    """

    mutants: tuple[Mutant, ...]
    total: int


@dataclass(frozen=True, slots=True)
class CoverageGenerated:
    """The final result of coverage generation.

    Attributes:
        coverage: the coverage of all scenarios together.
        mutation: their mutation score.
    """

    coverage: tuple[Coverage, ...]
    mutation: MutationScore


# ---- Compile runs: audit log, orders and events.


class FaultAttribution(Enum):
    """The party at fault if rules and a scenario disagree."""

    RULE = "rule"
    SCENARIO = "scenario"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The fault attribution of one failed scenario.

    Attributes:
        scenario_description: the scenario that failed.
        blame: the party at fault.
        reasoning: the reason.
        overruled: True if it was rejected, because it would allow an unsafe decision or change a fixed
            scenario.
    """

    scenario_description: str
    blame: FaultAttribution
    reasoning: str
    overruled: bool = False


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One decision of a run, for the audit log.

    Attributes:
        round: the repair round, from 1; 0 before the first.
        actor: the origin of the decision: `model:<provider/model>`, `engine` or `caller`.
        decision: the decision.
        time: seconds since 1970.
    """

    round: int
    actor: str
    decision: ScenarioCorrection | DiscardedScenario | RulePatch | Judgement
    time: float


@dataclass(frozen=True, slots=True)
class GenerationTurn:
    """The usage of one turn of a scenario author.

    Attributes:
        turn: its number, from 1.
        scenarios: the number of scenarios in the response.
        repaired: True if the first response was invalid.
        spent: the usage.
    """

    turn: int
    scenarios: int
    repaired: bool
    spent: UsageTotal


@dataclass(frozen=True, slots=True)
class CompileLimits:
    """The limits of a compile run.

    Attributes:
        repairs: maximum number of repair rounds after the first verification.
        probes: maximum number of probes of a review; 0 for no reviews.
        probe_rounds: maximum number of reviews of a batch of tools.
        tools_per_batch: maximum number of tools in one prompt.
        turns: maximum number of turns of one scenario author; None for no limit.
        budget: the budget of all model calls together.
    """

    repairs: int = 3
    probes: int = 5
    probe_rounds: int = 3
    tools_per_batch: int = 25
    turns: int | None = None
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class CompileOrder:
    """The input of a compile run.

    Attributes:
        constitution: the written policy.
        tools: the tools that it applies to.
        handwritten: scenarios that must hold unchanged.
        invariants: rules that precede all written rules, as in a policy document.
        lists: named lists for the rules, as in a policy document.
        limits: the limits of the run.
        replace_corrected: True to request replacements for corrected scenarios.
        directed: True to generate scenarios for coverage gaps.
        mutation: True to measure the mutation score.
        model: the model that writes and judges, as in `GenerateRequest.model`.
        allow_partial: True to compile a policy with sentences that rules do not enforce to their last word.
        context: the context that an enforcement point supplies, as in a policy document.
    """

    constitution: str
    tools: tuple[AnnotatedTool, ...]
    handwritten: tuple[TestScenario, ...] = ()
    invariants: tuple[Mapping[str, Any], ...] = ()
    lists: Mapping[str, Any] = field(default_factory=dict)
    limits: CompileLimits = field(default_factory=CompileLimits)
    replace_corrected: bool = False
    directed: bool = True
    mutation: bool = True
    model: str | None = None
    allow_partial: bool = False
    context: Mapping[str, Any] = field(default_factory=dict)


class CompilePhase(Enum):
    """The phase of a compile run."""

    RULES = "rules"
    SCENARIOS = "scenarios"
    FILTERING = "filtering"
    VERIFYING = "verifying"
    JUDGING = "judging"
    REPAIRING = "repairing"
    MEASURING = "measuring"
    STORING = "storing"


@dataclass(frozen=True, slots=True)
class PolicyCompiled:
    """Rules and scenarios agree; the last event.

    Attributes:
        document: the policy document in canonical form.
        scenarios: its suite, handwritten ones first.
        verification: the verification report.
        audit: the audit log.
        spent: the usage of language models.
        turns: the turns of the scenario authors.
        findings: warnings for the author of the policy.
    """

    document: bytes
    scenarios: tuple[TestScenario, ...]
    verification: VerificationReport
    audit: tuple[AuditEntry, ...]
    spent: UsageTotal
    turns: tuple[GenerationTurn, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A stored version of a policy.

    Attributes:
        policy_id: the id, equal for all versions.
        policy_hash: SHA-256 of the document in hex; identifies the version.
        compiled: the result of the compile run.
        input_hash: digest of the inputs and prompts in hex.
        create_time: the time of storage.
    """

    policy_id: str
    policy_hash: str
    compiled: PolicyCompiled
    input_hash: str
    create_time: datetime


@dataclass(frozen=True, slots=True)
class PolicySummary:
    """A summary of a stored policy.

    Attributes:
        policy_id: the id.
        policy_hash: identifies the version.
        rules: the number of rules.
        scenarios: the number of scenarios.
        create_time: the time of storage.
        name: the name in the document; may be empty.
    """

    policy_id: str
    policy_hash: str
    rules: int
    scenarios: int
    create_time: datetime
    name: str = ""


class StoredPolicies(Protocol):
    """Read access to stored policies, for other services."""

    async def document(self, policy_id: str) -> bytes:
        """Return the document of the latest version of a policy.

        Raises:
            NotFoundError: the policy does not exist.
        """
        ...
