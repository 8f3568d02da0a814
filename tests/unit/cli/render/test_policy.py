"""Console output of policy compilation.

One line per fact about a policy.
"""

from __future__ import annotations

import io
import json

from rich.console import Console

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.common.v1 import quality_pb2 as quality
from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.cli.render.policy import (
    PolicyProgressView,
    format_audit_entry,
    format_count,
    format_coverage,
    format_decision,
    format_failures,
    format_mutation_score,
    format_request,
    format_sources,
    live_policy_view,
)

Event = pb.CompilePolicyResponse
DOCUMENT = json.dumps({"rules": [{"id": "a"}]}).encode()
WARNING = common.Finding(code="ODD", path="", message="odd", severity=common.SEVERITY_WARNING)
SCENARIO = pb.PolicyScenario(
    scenario_id="s",
    description="alpha",
    expected=pb.EXPECTATION_ALLOW,
    source=pb.SCENARIO_SOURCE_GENERATED,
)
DENIED = pb.DecisionResult(decision=pb.DECISION_DENY)
USAGE = common.ModelUsage(calls=2)


def told(*events: pb.CompilePolicyResponse) -> list[str]:
    out = io.StringIO()
    story = PolicyProgressView(Console(file=out, highlight=False, markup=False, soft_wrap=True))
    for event in events:
        story.show(event)
    return out.getvalue().splitlines()


def progress(phase: pb.CompilePhase.ValueType, message: str) -> pb.CompilePolicyResponse:
    return Event(progress=Event.Progress(phase=phase, message=message, fraction=0.5))


def test_each_phase_is_told_once() -> None:
    rules, more, judging = (
        progress(pb.COMPILE_PHASE_RULES, "one batch"),
        progress(pb.COMPILE_PHASE_RULES, "another"),
        progress(pb.COMPILE_PHASE_JUDGING, "who is to blame"),
    )
    assert told(rules, more, judging) == ["  rules", "  judging"]


def test_what_is_written_is_counted_and_what_is_lacking_is_named() -> None:
    turn = pb.GenerationTurn(turn=1, usage=USAGE)
    lines = told(
        Event(rules_written=Event.RulesWritten(document=DOCUMENT, findings=[WARNING])),
        Event(scenarios_written=Event.ScenariosWritten(scenarios=[SCENARIO], turn=turn)),
        Event(scenarios_written=Event.ScenariosWritten(scenarios=[SCENARIO])),
        Event(scenarios_written=Event.ScenariosWritten(turn=turn)),
    )
    assert lines[:2] == ["    1 rule", "  warning ODD /: odd"]
    assert lines[2].startswith("    1 scenario (1 generated) · 2 calls")
    assert lines[3:] == ["    1 scenario (1 generated)"]


def test_a_scenario_that_fails_is_told_by_what_it_is_about() -> None:
    failure = pb.ScenarioResult(scenario_id="s", actual=DENIED)
    lines = told(
        Event(scenarios_written=Event.ScenariosWritten(scenarios=[SCENARIO])),
        Event(verified=Event.Verified(passed=1, failed=1, failures=[failure])),
    )
    assert lines[1:] == ["    1 passed, 1 failed", "  failed: alpha: expects allow, is deny by no rule"]


def test_the_end_sums_up() -> None:
    report = pb.VerificationReport(
        coverage=[quality.Coverage(kind="rule", covered=2, reachable=2)],
        mutation=quality.MutationScore(killed=3, score=1.0),
    )
    policy = pb.CompiledPolicy(document=DOCUMENT, scenarios=[SCENARIO], verification=report)
    compiled = Event.Compiled(policy=policy, findings=[WARNING], from_cache=True)
    first, *others = told(Event(compiled=compiled))
    assert first == "1 rule, 1 scenario (1 generated), cached for the same input; no model was called"
    assert others == [
        "  all sentences followed; figures of the rules as they stand:",
        "  rule coverage: 2 of 2 (100%)",
        "  mutants killed: 3 of 3 (100.0%), 0 more proved equivalent",
        "  0 decisions recorded",
        "  warning ODD /: odd",
    ]


def test_giving_up_says_what_it_cost() -> None:
    assert told(Event(failed=Event.Failed(usage=USAGE)))[0].startswith("  given up · 2 calls")


def test_a_decision_on_the_way_is_told_with_who_said_it() -> None:
    judgement = pb.JudgeResult(scenario_description="alpha", fault=pb.FAULT_ATTRIBUTION_RULE, reasoning="so")
    entry = pb.AuditEntry(actor="model:a/b", judge_result=judgement)
    assert told(Event(decided=entry)) == ["  model:a/b: alpha: blames rule; so"]


def test_where_nobody_watches_there_is_no_bar() -> None:
    out = io.StringIO()
    with live_policy_view(Console(file=out, highlight=False, markup=False)) as story:
        story.show(progress(pb.COMPILE_PHASE_STORING, "the policy"))
    assert out.getvalue() == "  storing\n"


DENIED_BY_RULE = pb.DecisionResult(decision=pb.DECISION_DENY, rule_id="r")
ALLOWED = pb.PolicyScenario(scenario_id="s", description="about\nalpha", expected=pb.EXPECTATION_ALLOW)


def test_a_failure_says_what_was_expected_and_what_decided() -> None:
    results = [
        pb.ScenarioResult(scenario_id="s", actual=DENIED_BY_RULE),
        pb.ScenarioResult(scenario_id="t", passed=True),
    ]
    assert [*format_failures(results, {"s": ALLOWED})] == [
        "  failed: about alpha: expects allow, is deny by r",
    ]
    assert [*format_failures(results, {})] == ["  failed: s: is deny by r"]


def test_a_long_list_of_failures_is_cut_and_says_so() -> None:
    *_, last = format_failures([pb.ScenarioResult(scenario_id="s", actual=DENIED_BY_RULE)] * 25, {})
    assert last == "  ... and 5 more"


def test_no_rule_is_told_as_such() -> None:
    assert format_decision(pb.DecisionResult(decision=pb.DECISION_DENY)) == "deny by no rule"


def test_a_call_is_told_on_one_line_with_who_calls() -> None:
    call = pb.PolicyRequest(server_name="a", tool_name="b", arguments=b'{"n":1}', roles=["x", "y"])
    assert format_request(call) == 'a/b {"n":1} as x, y'
    assert format_request(pb.PolicyRequest(server_name="a", tool_name="b")) == "a/b {}"


def test_coverage_is_of_what_can_be_reached() -> None:
    kinds = [
        quality.Coverage(kind="condition_decision", covered=3, reachable=4),
        quality.Coverage(kind="rule"),
    ]
    assert [*format_coverage(kinds)] == [
        "  condition/decision coverage: 3 of 4 (75%)",
        "  rule coverage: not measured",
    ]


def test_survivors_are_told_with_what_they_change() -> None:
    survivor = quality.Mutant(operator="drop_rule", path="/rules/0", before=b'{"id":"a"}')
    score = quality.MutationScore(killed=9, survived=1, equivalent=2, score=0.9, survivors=[survivor])
    assert [*format_mutation_score(score)] == [
        "  mutants killed: 9 of 10 (90.0%), 2 more proved equivalent",
        "    survives: drop_rule /rules/0: rule a → nothing",
    ]


def test_scenarios_are_counted_by_where_they_are_from() -> None:
    handwritten = pb.PolicyScenario(source=pb.SCENARIO_SOURCE_HANDWRITTEN)
    directed = pb.PolicyScenario(source=pb.SCENARIO_SOURCE_DIRECTED)
    assert format_sources([handwritten, directed, directed]) == "3 scenarios (1 handwritten, 2 directed)"
    assert format_sources([]) == "0 scenarios"
    assert format_count(1, "rule") == "1 rule"


def test_an_entry_of_the_audit_says_who_decided_what() -> None:
    corrected = pb.ScenarioCorrection(
        scenario_description="alpha",
        original=pb.EXPECTATION_DENY,
        corrected=pb.EXPECTATION_ESCALATE,
        reasoning="so",
    )
    entries = [
        pb.AuditEntry(actor="model:a/b", correction=corrected),
        pb.AuditEntry(
            actor="engine",
            discarded=pb.DiscardedScenario(scenario=ALLOWED, rule="r", actual=pb.DECISION_DENY),
        ),
        pb.AuditEntry(
            actor="model:a/b",
            rule_patch=pb.RulePatch(kind=pb.RULE_PATCH_KIND_UPDATE, rule_id="r", reasoning="so"),
        ),
        pb.AuditEntry(
            actor="model:a/b",
            judge_result=pb.JudgeResult(
                scenario_description="alpha",
                fault=pb.FAULT_ATTRIBUTION_SCENARIO,
                reasoning="so",
                overruled=True,
            ),
        ),
    ]
    assert [*map(format_audit_entry, entries)] == [
        "  model:a/b: alpha: expects escalate, not deny; so",
        "  engine: about alpha: discarded, r always decides deny",
        "  model:a/b: rule r: changed; so",
        "  model:a/b: alpha: blames scenario, which was overruled; so",
    ]
