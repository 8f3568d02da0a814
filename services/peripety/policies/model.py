"""What policies are made from and tested by, what was found out about them, and the work as events."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from peripety.gateway.model import Budget, Spent
from peripety.sim.policies.types import Decided, Decision, ToolRequest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from peripety.errors import Finding
    from peripety.quality import Coverage, Mutant, MutationScore

__all__ = [
    "AuditEntry",
    "Blame",
    "CompileEvent",
    "CompileLimits",
    "CompileOrder",
    "CompilePhase",
    "Compiled",
    "CompiledPolicy",
    "Covered",
    "Decided",
    "Decision",
    "DecisionChange",
    "DiscardedScenario",
    "Expectation",
    "Failed",
    "GenerationTurn",
    "Judgement",
    "Mutants",
    "PolicyDifference",
    "PolicySummary",
    "Progress",
    "RuleIssue",
    "RuleIssueKind",
    "RulePatch",
    "RulePatchKind",
    "RulesWritten",
    "ScenarioCorrection",
    "ScenarioFeedback",
    "ScenarioResult",
    "ScenarioSource",
    "ScenariosWritten",
    "StoredPolicies",
    "TestScenario",
    "ToolAnnotation",
    "ToolRequest",
    "VerificationReport",
    "Verified",
]


class Expectation(Enum):
    """What a scenario expects of the rules."""

    ALLOW = "allow"
    DENY = "deny"
    ESCALATE = "escalate"
    NOT_ALLOW = "not_allow"
    """Deny or escalate."""

    def is_met_by(self, decision: Decision) -> bool:
        """Whether a decision is what is expected."""
        if self is Expectation.NOT_ALLOW:
            return decision is not Decision.ALLOW
        return self is Expectation(decision.value)


class ScenarioSource(Enum):
    """Where a scenario comes from."""

    GENERATED = "generated"
    """A model wrote it."""
    HANDWRITTEN = "handwritten"
    """A person wrote it. It is never changed, removed or asked for again."""
    PROBE = "probe"
    """The judge wrote it to look into a gap."""
    DIRECTED = "directed"
    """The engine found it while searching for what the others miss; it expects what the rules say."""


@dataclass(frozen=True, slots=True)
class ToolAnnotation:
    """A tool that a policy is about.

    Attributes:
        server_name: the server that offers it.
        tool_name: its name.
        description: what it does; empty when nobody said.
        input_schema: JSON Schema (2020-12) of its arguments; None when it is not known.
        argument_roles: JSON Pointers into the arguments, each with what stands there.
        read_only: whether it changes nothing.
        destructive: whether what it does cannot be undone.
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
    """A request, and what the policy has to say to it.

    Attributes:
        description: what it is about; names it among the others.
        request: the request.
        expected_decision: what the policy has to say.
        reasoning: why.
        source: where it comes from.
        rule_id: the rule that it is meant to test; empty when nobody said.
        scenario_id: names it towards whoever wrote it; empty when they gave no name.
    """

    __test__ = False  # it is none of pytest's

    description: str
    request: ToolRequest
    expected_decision: Expectation
    reasoning: str = ""
    source: ScenarioSource = ScenarioSource.GENERATED
    rule_id: str = ""
    scenario_id: str = ""


@dataclass(frozen=True, slots=True)
class ScenarioCorrection:
    """A scenario that expected the wrong thing.

    Attributes:
        scenario_description: which one.
        original_decision: what it expected.
        corrected_decision: what is right.
        corrected_reasoning: why.
    """

    scenario_description: str
    original_decision: Expectation
    corrected_decision: Expectation
    corrected_reasoning: str


@dataclass(frozen=True, slots=True)
class DiscardedScenario:
    """A scenario that expects what no rule can bring about, or that no caller can send.

    Attributes:
        scenario: the scenario.
        rule: the invariant that decides its request, or `argument-schema` for arguments its tool refuses.
        actual: what that always says.
    """

    scenario: TestScenario
    rule: str
    actual: Decision


@dataclass(frozen=True, slots=True)
class ScenarioFeedback:
    """What the author of scenarios is told after they were verified.

    Attributes:
        corrections: scenarios that expected the wrong thing; they are put right already.
        discarded: scenarios that are in conflict with an invariant, or with the schema of their tool.
        probes: requests that showed what no scenario covers.
    """

    corrections: tuple[ScenarioCorrection, ...] = ()
    discarded: tuple[DiscardedScenario, ...] = ()
    probes: tuple[TestScenario, ...] = ()


# How rules and scenarios fit together.


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """How one scenario fared.

    Attributes:
        scenario: the scenario.
        actual: what the rules said.
        masked_rule_id: the rule that it is meant to test, which also takes hold, when another one decided
            first; empty otherwise.
    """

    scenario: TestScenario
    actual: Decided
    masked_rule_id: str = ""

    @property
    def passed(self) -> bool:
        """Whether the rules said what the scenario expects."""
        return self.scenario.expected_decision.is_met_by(self.actual.decision)


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """How rules and scenarios fit together.

    Attributes:
        results: one for each scenario, in their order.
        coverage: what the scenarios reach: `rule`, `condition_decision` and `boundary`.
        mutation: how many mutants they kill; None when it was not asked for.
    """

    results: tuple[ScenarioResult, ...]
    coverage: tuple[Coverage, ...] = ()
    mutation: MutationScore | None = None

    @property
    def failures(self) -> tuple[ScenarioResult, ...]:
        """The results of the scenarios that failed."""
        return tuple(result for result in self.results if not result.passed)


class RuleIssueKind(Enum):
    """What is odd about a rule."""

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
    """Something odd about a rule.

    Attributes:
        kind: what is odd.
        rule_id: the rule.
        caused_by: the rules, or invariants, that are to blame.
        witness: a request that shows it, replayed on the engine before it is reported; None where none is.
        message: one sentence for a person.
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
        witness: the request, replayed on both before it is reported.
        before: what the policy before says.
        after: what the policy after says.
    """

    witness: ToolRequest
    before: Decided
    after: Decided


class RulePatchKind(Enum):
    """Whether a rule was updated, added or deleted."""

    UPDATE = "update"
    ADD = "add"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class RulePatch:
    """One mechanical change of the rules.

    Attributes:
        kind: update, add or delete.
        rule_id: the rule.
        before: the rule before; None when it was added.
        after: the rule after; None when it was deleted.
        position: index of the rule in the order, from 0; where it was, when deleted.
        reasoning: why.
    """

    kind: RulePatchKind
    rule_id: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None
    position: int
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class PolicyDifference:
    """How two policies differ.

    Attributes:
        equivalent: whether it is proved that they decide every request the same.
        changes: examples, one for each pair of rules that differ; those newly allowed first.
        rule_changes: how the rules differ.
        findings: what could not be decided, as warnings.
    """

    equivalent: bool
    changes: tuple[DecisionChange, ...]
    rule_changes: tuple[RulePatch, ...]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Mutants:
    """Some mutants are done.

    Attributes:
        mutants: the mutants.
        total: mutants in all.
    """

    mutants: tuple[Mutant, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Covered:
    """Nothing more can be reached.

    Attributes:
        coverage: what all scenarios together reach.
        mutation: how many mutants they kill.
    """

    coverage: tuple[Coverage, ...]
    mutation: MutationScore


# How it came about.


class Blame(Enum):
    """Who is to blame when rules and a scenario disagree."""

    RULE = "rule"
    SCENARIO = "scenario"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Judgement:
    """Who is to blame for one disagreement.

    Attributes:
        scenario_description: the scenario that failed.
        blame: who is.
        reasoning: why.
        overruled: whether it was put aside, as it would let an unsafe decision pass or touch what stands.
    """

    scenario_description: str
    blame: Blame
    reasoning: str
    overruled: bool = False


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Something that was decided on the way, for the record.

    Attributes:
        round: the repair round, from 1; 0 before the first.
        actor: who said it: `model:<provider/model>`, `engine` or `caller`.
        decision: what was decided.
        time: when, in seconds since 1970.
    """

    round: int
    actor: str
    decision: ScenarioCorrection | DiscardedScenario | RulePatch | Judgement
    time: float


@dataclass(frozen=True, slots=True)
class GenerationTurn:
    """What one turn of a conversation that writes scenarios used.

    Attributes:
        turn: its number, from 1.
        scenarios: the scenarios that it gave.
        repaired: whether its first answer was invalid.
        spent: what it used.
    """

    turn: int
    scenarios: int
    repaired: bool
    spent: Spent


@dataclass(frozen=True, slots=True)
class CompileLimits:
    """How far compiling may go.

    Attributes:
        repairs: most repairs after the first verification.
        probes: most probes a round.
        probe_rounds: most rounds of probes.
        tools_per_batch: most tools that one question to a model is about.
        turns: most turns of one conversation that writes scenarios; None for no limit of its own.
        budget: what all questions together may use.
    """

    repairs: int = 3
    probes: int = 5
    probe_rounds: int = 3
    tools_per_batch: int = 25
    turns: int | None = None
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
class CompileOrder:
    """What to compile.

    Attributes:
        constitution: the written policy.
        tools: the tools that it is about.
        handwritten: scenarios that must hold as they are.
        invariants: rules that stand above those that are written, as in a policy document.
        lists: lists that rules may name, as in a policy document.
        limits: how far to go.
        replace_corrected: ask for scenarios in place of corrected ones too.
        directed: whether to add directed scenarios for what the written ones miss.
        mutation: whether to measure the mutation score.
        model: who writes and judges, as in `GenerateRequest.model`.
    """

    constitution: str
    tools: tuple[ToolAnnotation, ...]
    handwritten: tuple[TestScenario, ...] = ()
    invariants: tuple[Mapping[str, Any], ...] = ()
    lists: Mapping[str, Any] = field(default_factory=dict)
    limits: CompileLimits = field(default_factory=CompileLimits)
    replace_corrected: bool = False
    directed: bool = True
    mutation: bool = True
    model: str | None = None


class CompilePhase(Enum):
    """What compiling is busy with."""

    RULES = "rules"
    SCENARIOS = "scenarios"
    FILTERING = "filtering"
    VERIFYING = "verifying"
    JUDGING = "judging"
    REPAIRING = "repairing"
    MEASURING = "measuring"
    STORING = "storing"


@dataclass(frozen=True, slots=True)
class Progress:
    """The work went on.

    Attributes:
        phase: what it is busy with.
        round: the repair round, from 1; 0 before the first.
        message: one short sentence for a person.
        fraction: the share of the whole that is done, 0 … 1; never decreases.
    """

    phase: CompilePhase
    round: int
    message: str
    fraction: float


@dataclass(frozen=True, slots=True)
class RulesWritten:
    """Rules were written, or written anew.

    Attributes:
        document: the policy document now.
        findings: what the rules still lack.
    """

    document: bytes
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class ScenariosWritten:
    """Scenarios were written.

    Attributes:
        scenarios: the new ones only.
        turn: what the turn used; None when no model was asked.
    """

    scenarios: tuple[TestScenario, ...]
    turn: GenerationTurn | None = None


@dataclass(frozen=True, slots=True)
class Verified:
    """Scenarios were run.

    Attributes:
        round: the repair round, from 1; 0 before the first.
        report: how they fared.
    """

    round: int
    report: VerificationReport


@dataclass(frozen=True, slots=True)
class Compiled:
    """Rules and scenarios agree; the last event.

    Attributes:
        document: the policy document in canonical form.
        scenarios: its suite, handwritten ones first.
        verification: how they fit together.
        audit: everything that was decided on the way.
        spent: what was used of language models.
        turns: the turns of the conversations that wrote scenarios.
        findings: what a person should know, as warnings.
    """

    document: bytes
    scenarios: tuple[TestScenario, ...]
    verification: VerificationReport
    audit: tuple[AuditEntry, ...]
    spent: Spent
    turns: tuple[GenerationTurn, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """Rules and scenarios could not be brought together; the last event.

    Attributes:
        findings: why, and what to do.
        document: the policy document as far as it came; empty when it did not come to one.
        scenarios: the scenarios as far as they came.
        verification: the last verification; None when there was none.
        audit: everything that was decided on the way.
        spent: what was used of language models.
    """

    findings: tuple[Finding, ...]
    document: bytes
    scenarios: tuple[TestScenario, ...]
    verification: VerificationReport | None
    audit: tuple[AuditEntry, ...]
    spent: Spent


CompileEvent: TypeAlias = (
    Progress | RulesWritten | ScenariosWritten | Verified | AuditEntry | Compiled | Failed
)
"""What happens while a policy is compiled."""


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A policy in one of its versions, as it is stored.

    Attributes:
        policy_id: its id, the same for all its versions.
        policy_hash: SHA-256 of the document in hex; names the version.
        compiled: what was compiled.
        input_hash: hash over the inputs and the prompts, in hex.
        create_time: when it was stored.
    """

    policy_id: str
    policy_hash: str
    compiled: Compiled
    input_hash: str
    create_time: datetime


@dataclass(frozen=True, slots=True)
class PolicySummary:
    """A stored policy without its weight.

    Attributes:
        policy_id: its id.
        policy_hash: names the version.
        rules: rules in it.
        scenarios: scenarios in it.
        create_time: when it was stored.
    """

    policy_id: str
    policy_hash: str
    rules: int
    scenarios: int
    create_time: datetime


class StoredPolicies(Protocol):
    """Where others get the policies that are stored."""

    async def document(self, policy_id: str) -> bytes:
        """The document of a stored policy, in its latest version.

        Raises:
            NotFoundError: there is no such policy.
        """
        ...
