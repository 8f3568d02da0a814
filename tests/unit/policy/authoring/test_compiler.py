"""From a written policy to rules and scenarios that agree."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.concurrency import closing
from peripety.errors import FailedPreconditionError, UnavailableError
from peripety.gateway.budgets.order_budget import OrderBudget
from peripety.gateway.types.request import Budget
from peripety.policy.authoring import prompts
from peripety.policy.authoring.compiler import PolicyCompiler
from peripety.policy.authoring.prompts import (
    JUDGE_TASK,
    PATCHES_TASK,
    RULES_TASK,
    SCENARIOS_TASK,
)
from peripety.policy.authoring.run_context import InMemoryArtifactCache
from peripety.policy.events import CompileProgress, RulesWritten, ScenariosVerified, ScenariosWritten
from peripety.policy.types import (
    CompileLimits,
    DiscardedScenario,
    Expectation,
    Judgement,
    RulePatch,
    ScenarioCorrection,
    ScenarioOrigin,
)
from support.gateway.fake_gateway import SILENCE, FakeGateway, cut_off
from support.policy.models import (
    FINE,
    ORDER,
    POLICY,
    RIGHT,
    SATISFIED,
    Script,
    about,
    below,
    blames,
    generated_scenario,
    ran,
    rule,
    task_of,
    told,
    tool,
)

if TYPE_CHECKING:
    from peripety.gateway.types.request import GenerateRequest
    from peripety.policy.events import CompileEvent


WIDE = (rule("open", "allow", arguments=below("/")),)
WRONG = generated_scenario("wrong", "allow", at="/other/y")
UPDATE = [{"op": "update", "rule_id": "open", "rule": RIGHT[0]}]
KEPT = {**rule("structural-kept", "deny", arguments=below("/open/kept")), "id": "structural-kept"}
IMPOSSIBLE = generated_scenario("impossible", "allow", at="/open/kept/x")
UNSENDABLE = generated_scenario("unsendable", "deny", other=1)

BY_SOURCE = (ScenarioOrigin.HANDWRITTEN, ScenarioOrigin.GENERATED, ScenarioOrigin.DIRECTED)


def question(request: GenerateRequest) -> Any:
    return json.loads(request.messages[-1].text.rpartition("\n")[2])


# ---- when nothing goes wrong


async def test_rules_and_scenarios_that_agree_are_done_after_one_question_each() -> None:
    done = await ran()
    assert done.names == ["inside", "outside"]
    assert [one["when"]["servers"] for one in done.rules] == [["alpha"]]
    assert len(done.model.requests) == 3
    assert (done.compiled.audit, done.compiled.findings) == ((), ())
    assert done.compiled.verification.failures == ()
    assert (
        len(done.of(RulesWritten)) == len(done.of(ScenariosWritten)) == len(done.of(ScenariosVerified)) == 1
    )
    assert done.compiled.spent.calls == 3
    assert [turn.turn for turn in done.compiled.turns] == [1]


async def test_a_sentence_that_no_rule_follows_in_the_end_is_named() -> None:
    done = await ran(constitution=f"{ORDER.constitution} Be careful.")
    (found,) = done.compiled.findings
    assert (found.code, "Be careful." in found.message) == ("SENTENCE_UNFOLLOWED", True)


async def test_the_system_text_of_a_conversation_is_the_same_in_every_turn() -> None:
    script = Script(
        rules=(WIDE,),
        scenarios=((*FINE, UNSENDABLE), (generated_scenario("other", "deny", at="/b"),)),
        judgements=(blames("outside", "rule"), SATISFIED),
        patches=(UPDATE,),
    )
    done = await ran(script)
    for name in (SCENARIOS_TASK, JUDGE_TASK):
        asked = done.asked(name)
        assert len(asked) == 2
        for before, after in pairwise(asked):
            assert (before.system, before.schema) == (after.system, after.schema)
            assert after.messages[: len(before.messages)] == before.messages


async def test_the_material_is_told_with_the_invariants_up_front() -> None:
    done = await ran(invariants=(KEPT,))
    for name in (RULES_TASK, SCENARIOS_TASK, JUDGE_TASK):
        (request,) = done.asked(name)
        assert about(request)["invariants"] == [KEPT]
        assert about(request)["constitution"] == ORDER.constitution


# ---- what cannot be run


async def test_scenarios_against_an_invariant_or_a_schema_are_discarded_and_replaced() -> None:
    replacement = generated_scenario("possible", "deny", at="/open/kept/x")
    script = Script(scenarios=((*FINE, IMPOSSIBLE, UNSENDABLE), (replacement,)))
    done = await ran(script, invariants=(KEPT,))
    thrown = done.decided(DiscardedScenario)
    assert [(one.scenario.description, one.rule) for one in thrown] == [
        ("impossible", "structural-kept"),
        ("unsendable", "argument-schema"),
    ]
    assert {entry.actor for entry in done.last.audit} == {"engine"}
    said = done.asked(SCENARIOS_TASK)[1].messages[-1].text
    assert "structural-kept" in said
    assert "argument-schema" in said
    assert done.names == ["inside", "outside", "possible"]


async def test_replacements_are_filtered_again() -> None:
    script = Script(scenarios=((*FINE, IMPOSSIBLE), (replace(IMPOSSIBLE, description="again"),), ()))
    done = await ran(script, invariants=(KEPT,))
    assert [one.scenario.description for one in done.decided(DiscardedScenario)] == ["impossible", "again"]
    assert done.names == ["inside", "outside"]


async def test_what_is_discarded_takes_no_other_scenario_of_its_name_along() -> None:
    script = Script(scenarios=((replace(UNSENDABLE, description="outside"), *FINE), ()))
    done = await ran(script)
    assert {result.scenario.request.arguments["at"] for result in done.compiled.verification.results} == {
        "/open/x",
        "/other",
    }


async def test_of_scenarios_that_contradict_each_other_the_first_stands_and_a_person_is_told() -> None:
    flipped = generated_scenario("flipped", "allow", at="/other")
    script = Script(scenarios=((*FINE, flipped, UNSENDABLE), (replace(flipped, description="again"),)))
    done = await ran(script)
    assert done.codes == ["SCENARIOS_CONTRADICT", "SCENARIOS_CONTRADICT"]
    assert [finding.message.split('"')[3] for finding in done.last.findings] == ["flipped", "again"]
    assert done.run == ["inside", "outside"]


async def test_of_probes_that_contradict_each_other_the_first_stands() -> None:
    doubt, flipped = (
        generated_scenario("doubt", "deny", at="/y"),
        generated_scenario("flipped", "allow", at="/y"),
    )
    judgement = {"satisfied": False, "attributions": [], "probes": [told(doubt), told(flipped)]}
    done = await ran(Script(rules=(WIDE,), scenarios=(FINE[:1],), judgements=(judgement, SATISFIED)))
    assert done.codes == ["SCENARIO_NOT_MET", "SCENARIOS_CONTRADICT"]


# ---- blame


async def test_a_scenario_that_expects_too_much_is_corrected_in_place_and_kept() -> None:
    script = Script(scenarios=((WRONG, *FINE),), judgements=(blames("wrong", "scenario", "deny"),))
    done = await ran(script)
    (correction,) = done.decided(ScenarioCorrection)
    assert (correction.original_decision, correction.corrected_decision) == (
        Expectation.ALLOW,
        Expectation.DENY,
    )
    assert done.run == ["wrong", "inside", "outside"]
    assert done.compiled.scenarios[0].expected_decision is Expectation.DENY
    assert len(done.asked(SCENARIOS_TASK)) == 1
    assert {entry.actor for entry in done.last.audit} == {"model:fake/scripted"}


async def test_handwritten_scenarios_are_told_before_what_became_of_them() -> None:
    stands = replace(generated_scenario("stands", "allow", at="/nowhere"), reasoning="")
    done = await ran(Script(rules=((),)), handwritten=(stands,))
    assert done.of(ScenariosWritten)[0].scenarios == (stands,)
    assert '"stands" expects allow, and' in done.last.findings[0].message


async def test_corrected_scenarios_are_replaced_when_that_is_wanted() -> None:
    script = Script(
        scenarios=((WRONG, *FINE), (generated_scenario("instead", "deny", at="/other/z"),)),
        judgements=(blames("wrong", "scenario", "deny"), SATISFIED),
    )
    done = await ran(script, replace_corrected=True)
    assert "not allow but deny" in done.asked(SCENARIOS_TASK)[1].messages[-1].text
    assert done.run == ["inside", "outside", "instead"]


async def test_who_replaces_a_scenario_cannot_make_the_rules_forget_it() -> None:
    more = generated_scenario("more", "allow", at="/more")
    reaching = rule("open", "allow", arguments=below("/open", "/more", "/other"))
    script = Script(
        scenarios=((WRONG, FINE[0], more), (generated_scenario("instead", "deny", at="/kept"),)),
        judgements=(blames("wrong", "scenario", "deny"), SATISFIED),
        patches=([{"op": "update", "rule_id": "open", "rule": reaching}],),
    )
    done = await ran(script, replace_corrected=True)
    assert done.codes[0] == "SCENARIO_NOT_MET"
    assert not done.decided(RulePatch)
    assert "wrong" in question(done.asked(PATCHES_TASK)[1])["refused"]


async def test_the_rules_are_mended_mechanically_where_they_are_to_blame() -> None:
    script = Script(rules=(WIDE,), judgements=(blames("outside", "rule"), SATISFIED), patches=(UPDATE,))
    done = await ran(script)
    (patch,) = done.decided(RulePatch)
    assert (patch.rule_id, patch.position, patch.reasoning) == ("open", 0, "so be it")
    assert patch.after == done.rules[0]
    assert [event.round for event in done.of(ScenariosVerified)] == [0, 1]
    asked = question(done.asked(PATCHES_TASK)[0])
    assert [one["description"] for one in asked["failed"]] == ["outside"]
    assert asked["failed"][0]["decided"]["rule"] == "open"


async def test_a_judge_cannot_make_an_unsafe_decision_pass() -> None:
    script = Script(rules=(WIDE,), judgements=(blames("outside", "scenario", "allow"),))
    done = await ran(script)
    (finding,) = [one for one in done.failed.findings if one.code == "EXPECTATION_CONTESTED"]
    for told_of in ('"outside"', "rule open", "because", "the judge says so", "so be it", "handwritten"):
        assert told_of in finding.message
    assert all(judgement.overruled for judgement in done.decided(Judgement))
    assert not done.decided(ScenarioCorrection)
    outside = next(one for one in done.failed.scenarios if one.description == "outside")
    assert outside.expected_decision is Expectation.DENY


async def test_what_a_judge_contests_is_mended_in_the_rules_all_the_same() -> None:
    script = Script(
        rules=(WIDE,),
        judgements=(blames("outside", "scenario", "allow"), SATISFIED),
        patches=(UPDATE,),
    )
    done = await ran(script)
    assert done.rules[0]["when"]["arguments"] == below("/open")
    assert [judgement.overruled for judgement in done.decided(Judgement)] == [True]
    assert done.compiled.scenarios[1].expected_decision is Expectation.DENY


async def test_handwritten_scenarios_stand_whoever_is_blamed() -> None:
    own = generated_scenario("by hand", "deny", source=ScenarioOrigin.HANDWRITTEN, at="/open/own")
    script = Script(judgements=(blames("by hand", "scenario", "allow"),))
    done = await ran(script, handwritten=(own,))
    assert done.failed.scenarios[0] == own
    assert {"EXPECTATION_CONTESTED", "HANDWRITTEN_BLAMED"} <= set(done.codes)
    assert len(done.asked(PATCHES_TASK)) > 0


async def test_rules_that_were_changed_are_judged_again_though_every_scenario_passes() -> None:
    script = Script(rules=(WIDE,), judgements=(blames("outside", "rule"), SATISFIED), patches=(UPDATE,))
    done = await ran(script)
    first, second = map(question, done.asked(JUDGE_TASK))
    assert (len(first["failed"]), second["failed"]) == (1, [])
    assert second["sentences"]


async def test_a_judge_is_heard_only_about_what_it_was_shown() -> None:
    everywhere = generated_scenario("elsewhere", "allow", at="/other")
    other = replace(everywhere, request=replace(everywhere.request, server_name="beta"))

    def answer(request: GenerateRequest) -> Any:
        assert request.schema is not None
        is_alpha = about(request)["tools"][0]["server_name"] == "alpha"
        match task_of(request):
            case "rules":
                return {"rules": [RIGHT[0]]}
            case "scenarios":
                return {"scenarios": [told(FINE[0] if is_alpha else other)]}
            case "patches":
                return {"reasoning": "", "operations": []}
        return blames("elsewhere", "scenario", "deny") if is_alpha else SATISFIED

    done = await ran(FakeGateway(answer), tools=(tool("a"), tool("a", "beta")))
    assert not done.decided(ScenarioCorrection)
    assert done.codes[0] == "SCENARIO_NOT_MET"


async def test_nobody_is_asked_about_a_pass_by_a_word() -> None:
    script = Script(judgements=({"satisfied": False, "attributions": [], "probes": []},))
    done = await ran(script)
    assert done.compiled.findings[0].code == "POLICY_DOUBTED"


async def test_a_judge_without_a_valid_answer_leaves_every_failure_to_the_rules() -> None:
    script = Script(rules=(WIDE,), judgements=("no JSON", "no JSON", SATISFIED), patches=(UPDATE,))
    done = await ran(script)
    assert [finding.code for finding in done.compiled.findings] == ["JUDGE_SILENT"]
    assert done.compiled.verification.failures == ()


# ---- probes


def probing(*probes: Any) -> dict[str, Any]:
    return {"satisfied": False, "attributions": [], "probes": [*map(told, probes)]}


async def test_probes_that_pass_become_scenarios_without_another_question() -> None:
    probe = generated_scenario("a probe", "deny", at="/openness")
    done = await ran(Script(judgements=(probing(probe),)))
    assert len(done.model.requests) == 3
    assert not done.compiled.findings
    written = [one for event in done.of(ScenariosWritten) for one in event.scenarios]
    assert [one.description for one in written if one.source is ScenarioOrigin.PROBE] == ["a probe"]


async def test_a_probe_that_fails_is_mended_and_the_changed_rules_are_reviewed_again() -> None:
    probe = generated_scenario("a probe", "deny", at="/other")
    script = Script(
        rules=(WIDE,),
        scenarios=(FINE[:1],),
        judgements=(probing(probe), SATISFIED),
        patches=(UPDATE,),
    )
    done = await ran(script)
    assert done.rules[0]["when"]["arguments"] == below("/open")
    first, second = map(question, done.asked(JUDGE_TASK))
    assert len(done.model.requests) == 5
    assert (first["sentences"][-1]["sentence"], first["sentences"][-1]["rules"]) == (POLICY, [])
    assert ("rules" in first, first["order"], second["order"]) == (False, ["open"], ["open"])
    assert second["sentences"][0]["rules"][0]["english"].startswith(
        "Allow a call of alpha/a if every `place`"
    )
    assert second["sentences"][0]["rules"][0]["this"] == 'a {"at":"/open"}: allow by open'
    assert second["sentences"][0]["rules"][0]["not_this"].endswith("deny by no rule")


async def test_a_review_comes_after_the_failures_and_shows_no_servers() -> None:
    script = Script(rules=(WIDE,), judgements=(blames("outside", "rule"), SATISFIED), patches=(UPDATE,))
    done = await ran(script)
    first, second = map(question, done.asked(JUDGE_TASK))
    assert ("sentences" in first, first["probes"]) == (False, 0)
    assert ("sentences" in second, second["probes"]) == (True, 5)
    shown = [*first["rules"], *question(done.asked(PATCHES_TASK)[0])["rules"]]
    assert not any("servers" in one["when"] for one in shown)


async def test_a_second_review_shows_only_the_sentences_whose_rules_changed() -> None:
    other = {**rule("other", "deny", arguments=below("/x")), "principle": "Nothing below /x is allowed."}
    probe = generated_scenario("a probe", "deny", at="/other")
    script = Script(
        rules=((other, {**WIDE[0], "principle": POLICY}),),
        scenarios=(FINE[:1],),
        judgements=(probing(probe), SATISFIED),
        patches=(UPDATE,),
    )
    done = await ran(script, constitution=f"{POLICY} Nothing below /x is allowed.")
    first, second = map(question, done.asked(JUDGE_TASK))
    assert len(first["sentences"]) == 2
    assert [one["sentence"] for one in second["sentences"]] == [POLICY]


async def test_questions_about_failures_have_only_what_is_about_their_tools() -> None:
    tools = (tool("a"), tool("b"))
    rules = (
        rule("first", "allow", tools=["a"], arguments=below("/")),
        rule("second", "allow", tools=["b"]),
    )
    passing = generated_scenario("elsewhere", "allow", name="b")
    fix = {**rule("first", "allow", tools=["a"], arguments=below("/open")), "principle": POLICY}
    script = Script(
        rules=(rules,),
        scenarios=((*FINE, passing),),
        judgements=(blames("outside", "rule"), SATISFIED),
        patches=([{"op": "update", "rule_id": "first", "rule": fix}],),
    )
    done = await ran(script, tools=tools)
    for asked in (question(done.asked(JUDGE_TASK)[0]), question(done.asked(PATCHES_TASK)[0])):
        assert asked["order"] == ["first", "second"]
        assert [one["id"] for one in asked["rules"]] == ["first"]
    assert question(done.asked(JUDGE_TASK)[0])["passed"] == ["inside: allow by first"]
    assert done.run == ["inside", "outside", "elsewhere"]


async def test_doubts_of_a_review_are_told_word_by_word() -> None:
    doubtful = {**SATISFIED, "satisfied": False, "doubts": ["'nothing else' is not clear"]}
    done = await ran(Script(judgements=(doubtful,)))
    (found,) = done.compiled.findings
    assert (found.code, "'nothing else' is not clear" in found.message) == ("POLICY_DOUBTED", True)


# ---- contested scenarios


STRICT = generated_scenario("strict", "deny", at="/open/y")
CONTESTING = blames("strict", "scenario", "allow")


def contested(description: str, sentence: str) -> dict[str, Any]:
    """The answer of an author about a contested scenario."""
    return {"scenarios": [], "contested": [{"description": description, "sentence": sentence}]}


@pytest.mark.parametrize("sentence", ["", "Nothing below /open/y is allowed."], ids=["none", "invented"])
async def test_a_contested_scenario_is_withdrawn_without_a_sentence_of_the_policy(sentence: str) -> None:
    script = Script(
        scenarios=((*FINE, STRICT), contested("strict", sentence)), judgements=(CONTESTING, SATISFIED)
    )
    done = await ran(script)
    assert "the judge says so" in done.asked(SCENARIOS_TASK)[1].messages[-1].text
    assert [(one.scenario.description, one.rule) for one in done.decided(DiscardedScenario)] == [
        ("strict", "withdrawn"),
    ]
    assert done.run == ["inside", "outside"]
    assert not done.asked(PATCHES_TASK)
    assert done.compiled.verification.failures == ()


async def test_a_run_with_a_contested_scenario_goes_on_and_ends_with_everything_measured() -> None:
    script = Script(
        scenarios=((*FINE, STRICT), contested("strict", "and nothing else")),
        judgements=(CONTESTING, SATISFIED),
    )
    done = await ran(script)
    assert done.codes == ["EXPECTATION_CONTESTED"]
    assert done.failed.verification is not None
    assert done.failed.verification.failures == ()
    assert done.failed.verification.mutation is not None
    assert done.names == ["inside", "outside", "strict"]
    first, second = map(question, done.asked(JUDGE_TASK))
    assert ("sentences" in first, "sentences" in second) == (False, True)
    assert len(done.asked(SCENARIOS_TASK)) == 2
    assert len(done.asked(PATCHES_TASK)) == 1


async def test_a_contested_scenario_that_the_rules_then_meet_is_kept() -> None:
    script = Script(
        rules=(WIDE,),
        scenarios=(FINE, contested("outside", "and nothing else")),
        judgements=(blames("outside", "scenario", "allow"), SATISFIED),
        patches=(UPDATE,),
    )
    done = await ran(script)
    assert done.run == ["inside", "outside"]
    assert done.compiled.verification.failures == ()


async def test_no_more_probes_than_allowed_and_no_more_rounds() -> None:
    rounds = [
        probing(*(generated_scenario(f"{n} {k}", "deny", at=f"/{n}/{k}") for k in range(9))) for n in range(9)
    ]
    done = await ran(
        Script(scenarios=(FINE, ()), judgements=tuple(rounds)),
        limits=CompileLimits(repairs=0, probes=2, probe_rounds=2),
    )
    assert not done.compiled.findings
    written = [one for event in done.of(ScenariosWritten) for one in event.scenarios]
    probes = [one.description for one in written if one.source is ScenarioOrigin.PROBE]
    assert probes == ["0 0", "0 1"]
    assert [question(request)["probes"] for request in done.asked(JUDGE_TASK)] == [2]


async def test_a_probe_cannot_make_the_rules_allow_anything() -> None:
    script = Script(judgements=(probing(generated_scenario("a probe", "allow", at="/x")), SATISFIED))
    done = await ran(script)
    assert done.names == ["inside", "outside"]
    assert not done.asked(PATCHES_TASK)
    (judgement,) = done.decided(Judgement)
    assert (judgement.scenario_description, judgement.overruled) == ("a probe", True)


async def test_without_probes_a_judge_is_asked_only_when_something_fails() -> None:
    done = await ran(limits=CompileLimits(probes=0))
    assert not done.asked(JUDGE_TASK)


# ---- repairs


async def test_a_change_that_allows_what_nobody_asked_for_is_undone_and_its_author_told() -> None:
    kept = rule("kept", "deny", arguments=below("/open/kept"))
    add = {"op": "add", "rule_id": "kept", "rule": kept}
    widen = {"op": "update", "rule_id": "open", "rule": WIDE[0]}
    script = Script(
        scenarios=(
            (
                generated_scenario("inside", "allow", at="/open/x"),
                generated_scenario("kept", "deny", at="/open/kept/x"),
            ),
        ),
        judgements=(blames("kept", "rule"), SATISFIED),
        patches=((add, widen), (add,)),
    )
    done = await ran(script)
    assert [one["id"] for one in done.rules] == ["kept", "open"]
    assert done.rules[1]["when"]["arguments"] == below("/open")
    refused = question(done.asked(PATCHES_TASK)[1])["refused"]
    assert "no scenario needs: alpha/a with" in refused


async def test_a_change_that_breaks_what_passed_is_undone_and_its_author_told() -> None:
    none = [{"op": "delete", "rule_id": "open"}]
    script = Script(rules=(WIDE,), judgements=(blames("outside", "rule"),), patches=(none, UPDATE))
    done = await ran(script, limits=CompileLimits(probes=0))
    assert "inside" in question(done.asked(PATCHES_TASK)[1])["refused"]
    assert [patch.kind.value for patch in done.decided(RulePatch)] == ["update"]
    assert done.rules[0]["id"] == "open"


@pytest.mark.parametrize(
    "unfit",
    [
        [{"op": "delete", "rule_id": "other"}],
        [{"op": "add", "rule_id": "open", "rule": RIGHT[0]}],
        [{"op": "update", "rule_id": "open", "rule": {**RIGHT[0], "id": "other"}}],
        [{"op": "update", "rule_id": "open", "rule": rule("open", "deny", arguments=below("no path"))}],
        "no JSON",
    ],
    ids=["unknown", "duplicate", "rename", "invalid", "no answer"],
)
async def test_where_no_change_can_be_made_the_rules_are_written_anew(unfit: Any) -> None:
    script = Script(rules=(WIDE, RIGHT), judgements=(blames("outside", "rule"), SATISFIED), patches=(unfit,))
    done = await ran(script)
    assert done.rules[0]["when"]["arguments"] == below("/open")
    assert "outside" in done.asked(RULES_TASK)[1].messages[-1].text
    assert [patch.reasoning for patch in done.decided(RulePatch)] == ["rewritten"]


async def test_no_more_repairs_than_allowed() -> None:
    step = [
        [{"op": "add", "rule_id": f"n{n}", "rule": rule(f"n{n}", "deny", arguments=below(f"/x{n}"))}]
        for n in range(9)
    ]
    failing = tuple(generated_scenario(f"s{n}", "deny", at=f"/x{n}") for n in range(9))
    script = Script(
        rules=(WIDE,),
        scenarios=((FINE[0], *failing),),
        judgements=(SATISFIED,),
        patches=tuple(step),
    )
    done = await ran(script, limits=CompileLimits(repairs=2, probes=0))
    assert len(done.asked(PATCHES_TASK)) == 2
    assert done.codes.count("SCENARIO_NOT_MET") == 7
    assert [event.round for event in done.of(ScenariosVerified)] == [0, 1, 2, 2]


async def test_a_run_in_which_nothing_changes_any_more_ends() -> None:
    script = Script(rules=(WIDE,), judgements=(blames("outside", "rule"),))
    done = await ran(script, limits=CompileLimits(repairs=20))
    assert len(done.asked(PATCHES_TASK)) == 1
    assert done.codes == ["SCENARIO_NOT_MET"]


# ---- answers that are wrong


@pytest.mark.parametrize("name", [RULES_TASK, SCENARIOS_TASK, JUDGE_TASK])
@pytest.mark.parametrize("bad", [cut_off(), "no JSON", {"other": 1}])
async def test_a_truncated_or_invalid_answer_costs_one_repair_and_never_the_run(name: str, bad: Any) -> None:
    script = Script()
    seen: list[GenerateRequest] = []

    def answer(request: GenerateRequest) -> Any:
        if task_of(request) == name and not seen:
            seen.append(request)
            return bad
        return script(request)

    done = await ran(FakeGateway(answer))
    assert done.compiled.spent.calls == 4


async def test_rules_that_the_engine_refuses_are_put_right_in_the_same_turn() -> None:
    bad = (rule("open", "allow", arguments=below("not a path")),)
    done = await ran(Script(rules=(bad, RIGHT)))
    assert "BAD_ENTRY" in done.model.requests[1].messages[-1].text
    assert done.rules[0]["when"]["arguments"] == below("/open")


# ---- batches

TOOLS = (*(tool(name) for name in "abcd"), tool("a", "beta"))


class Many:
    """A model that writes a rule for each tool, as many as one answer can hold."""

    def __init__(self, most: int = 99, failing: str = "") -> None:
        self.most = most
        self.failing = failing

    def __call__(self, request: GenerateRequest) -> Any:
        assert request.schema is not None
        tools = about(request)["tools"]
        if self.failing == tools[0]["server_name"]:
            return "never JSON"
        if len(tools) > self.most:
            return cut_off()
        match task_of(request):
            case "rules":
                return {"rules": [rule("one", "allow", read_only=False)]}
            case "scenarios":
                asked = [(one["server_name"], one["tool_name"]) for one in tools]
                return {
                    "scenarios": [
                        {
                            **told(generated_scenario("a call", "allow")),
                            "request": {"server_name": server, "tool_name": name, "arguments": {}},
                        }
                        for server, name in asked
                    ],
                }
        return SATISFIED


def with_tools(**changed: Any) -> dict[str, Any]:
    return {"tools": TOOLS, **changed}


async def test_tools_are_asked_about_by_server_so_many_at_a_time_and_merged_in_their_order() -> None:
    done = await ran(FakeGateway(Many()), **with_tools(limits=CompileLimits(tools_per_batch=3)))
    asked = [[one["tool_name"] for one in about(request)["tools"]] for request in done.asked(RULES_TASK)]
    assert asked == [["a", "b", "c"], ["d"], ["a"]]
    assert [one["id"] for one in done.rules] == ["one", "one-2", "one-3"]
    assert [one["when"].get("tools") for one in done.rules] == [["a", "b", "c"], ["d"], None]
    assert [one["when"]["servers"] for one in done.rules] == [["alpha"], ["alpha"], ["beta"]]
    calls = [(one.request.server_name, one.request.tool_name) for one in done.compiled.scenarios]
    assert calls == [("alpha", "a"), ("alpha", "b"), ("alpha", "c"), ("alpha", "d"), ("beta", "a")]
    assert len(set(done.names)) == 5
    assert done.model.most_running > 1


async def test_servers_whose_tools_have_different_names_share_a_batch() -> None:
    tools = (tool("a"), tool("b", "beta"), tool("c", "beta"), tool("a", "gamma"))
    own = (rule("one", "allow", tools=["a"]), rule("two", "allow", tools=["a", "c"]))
    others = rule("all", "deny", destructive=True)

    def answer(request: GenerateRequest) -> Any:
        is_first = about(request)["tools"][0]["server_name"] == "alpha"
        match task_of(request):
            case "rules":
                return {"rules": [*own, others] if is_first else [others]}
            case "scenarios":
                return {"scenarios": []}
        return SATISFIED

    done = await ran(FakeGateway(answer), tools=tools)
    asked = [
        [(one["server_name"], one["tool_name"]) for one in about(request)["tools"]]
        for request in done.asked(RULES_TASK)
    ]
    assert asked == [[("alpha", "a"), ("beta", "b"), ("beta", "c")], [("gamma", "a")]]
    assert [one["when"]["servers"] for one in done.rules] == [
        ["alpha"],
        ["alpha", "beta"],
        ["alpha", "beta"],
        ["gamma"],
    ]


async def test_all_conversations_about_the_same_tools_begin_with_the_same_bytes() -> None:
    script = Script(
        rules=(WIDE,),
        scenarios=((*FINE, UNSENDABLE), ()),
        judgements=(blames("outside", "rule"), SATISFIED),
        patches=(UPDATE,),
    )
    done = await ran(script)
    assert {task_of(request) for request in done.model.requests} == {"rules", "scenarios", "judge", "patches"}
    assert len({request.system for request in done.model.requests}) == 1
    schemas = [request.schema for request in done.model.requests]
    assert len({json.dumps([one.name, one.document]) for one in schemas if one is not None}) == 1


async def test_an_answer_may_name_no_tool_of_another_batch() -> None:
    done = await ran(FakeGateway(Many()), **with_tools())
    for request in done.asked(SCENARIOS_TASK):
        assert request.schema is not None
        items = request.schema.document["properties"]["scenarios"]["items"]
        names = {one["tool_name"] for one in about(request)["tools"]}
        assert {*items["properties"]["request"]["properties"]["tool_name"]["enum"]} == names


async def test_a_batch_whose_answer_is_cut_off_is_halved() -> None:
    done = await ran(FakeGateway(Many(most=2)), **with_tools())
    asked = [[one["tool_name"] for one in about(request)["tools"]] for request in done.asked(RULES_TASK)]
    assert sorted(map(len, asked)) == [1, 2, 2, 4, 4]  # truncated requests are sent twice each
    assert len(done.rules) == 3
    assert len(done.names) == 5


async def test_a_batch_that_fails_stops_no_other_and_what_those_wrote_is_kept() -> None:
    artifacts = InMemoryArtifactCache()
    done = await ran(FakeGateway(Many(failing="beta")), artifacts=artifacts, **with_tools())
    (finding,) = done.failed.findings
    assert (finding.code, finding.message[:4]) == ("BATCH_FAILED", "beta")
    again = await ran(FakeGateway(Many()), artifacts=artifacts, **with_tools())
    assert [about(request)["tools"][0]["server_name"] for request in again.asked(RULES_TASK)] == [
        "beta",
    ]
    assert len(again.run) == 5


async def test_who_cannot_be_asked_at_all_is_an_error() -> None:
    with pytest.raises(FailedPreconditionError, match="no key"):
        await ran(FakeGateway(lambda _: FailedPreconditionError("no key", code="CREDENTIALS")))
    with pytest.raises(UnavailableError):
        await ran(Script(judgements=(UnavailableError("gone"),)))


async def test_the_same_answers_give_the_same_result() -> None:
    one, other = [await ran(FakeGateway(Many(most=2)), **with_tools()) for _ in range(2)]
    assert one.compiled.document == other.compiled.document
    assert one.compiled.scenarios == other.compiled.scenarios


# ---- what was written before


async def test_what_was_written_for_the_same_is_not_asked_for_again() -> None:
    artifacts = InMemoryArtifactCache()
    one = await ran(artifacts=artifacts)
    other = await ran(artifacts=artifacts)
    assert not other.asked(RULES_TASK)
    assert not other.asked(SCENARIOS_TASK)
    assert other.compiled.turns == ()
    assert (one.last.document, one.last.scenarios) == (other.last.document, other.last.scenarios)


@pytest.mark.parametrize(
    "changed",
    [
        {"constitution": "Another policy."},
        {"tools": (tool("a", description="another tool"),)},
        {"invariants": (KEPT,)},
        {"model": "x/y"},
    ],
    ids=["text", "tools", "invariants", "model"],
)
async def test_whatever_is_changed_is_asked_for_again(changed: dict[str, Any]) -> None:
    artifacts = InMemoryArtifactCache()
    await ran(artifacts=artifacts)
    other = await ran(artifacts=artifacts, **changed)
    assert other.asked(RULES_TASK)
    assert other.asked(SCENARIOS_TASK)


async def test_a_changed_prompt_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    artifacts = InMemoryArtifactCache()
    await ran(artifacts=artifacts)
    load = prompts.load_prompt
    monkeypatch.setattr(prompts, "load_prompt", lambda name: f"other {load(name)}")
    assert (await ran(artifacts=artifacts)).asked(RULES_TASK)


async def test_without_a_conversation_nothing_is_asked_for_again() -> None:
    artifacts = InMemoryArtifactCache()
    script = Script(scenarios=((*FINE, UNSENDABLE), ()))
    await ran(script, artifacts=artifacts)
    other = await ran(Script(), artifacts=artifacts)
    assert not other.asked(SCENARIOS_TASK)
    assert other.names == ["inside", "outside"]


def test_the_fingerprint_knows_everything_but_the_budget() -> None:
    compiler = PolicyCompiler(FakeGateway(Script()), InMemoryArtifactCache())
    own = generated_scenario("x", source=ScenarioOrigin.HANDWRITTEN)
    limits = ORDER.limits
    orders = [
        ORDER,
        replace(ORDER, constitution="x"),
        replace(ORDER, tools=(tool("b"),)),
        replace(ORDER, handwritten=(own,)),
        replace(ORDER, invariants=(KEPT,)),
        replace(ORDER, lists={"a": {"kind": "path", "values": ["/"]}}),
        replace(ORDER, limits=replace(limits, repairs=1)),
        replace(ORDER, replace_corrected=True),
        replace(ORDER, directed=True),
        replace(ORDER, mutation=False),
        replace(ORDER, model="x/y"),
    ]
    assert len({compiler.fingerprint(order) for order in orders}) == len(orders)
    cheap = replace(ORDER, limits=replace(limits, budget=Budget(max_calls=1)))
    assert compiler.fingerprint(cheap) == compiler.fingerprint(ORDER)


# ---- budgets and ends


async def test_a_budget_that_is_used_up_ends_the_run_with_what_there_is() -> None:
    limits = CompileLimits(budget=Budget(max_calls=2))
    done = await ran(limits=limits)
    assert done.codes == ["BUDGET_EXHAUSTED"]
    assert done.failed.spent.calls == 2
    assert len(done.failed.scenarios) == 2
    assert done.failed.document


async def test_time_that_ends_after_the_last_question_leaves_measuring_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(OrderBudget, "is_expired", True)
    done = await ran(directed=True)
    assert done.codes == ["MEASURED_IN_PART"]
    assert done.names == ["inside", "outside"]
    assert not done.compiled.verification.failures


async def test_under_a_cap_one_question_follows_the_other() -> None:
    limits = CompileLimits(tools_per_batch=1, budget=Budget(max_calls=100))
    done = await ran(FakeGateway(Many()), **with_tools(limits=limits))
    assert done.model.most_running == 1


async def test_no_more_turns_of_a_conversation_than_allowed() -> None:
    script = Script(scenarios=((*FINE, UNSENDABLE), ()))
    done = await ran(script, limits=CompileLimits(turns=1))
    assert len(done.asked(SCENARIOS_TASK)) == 1
    assert done.codes == ["NOT_REPLACED"]


@pytest.mark.parametrize(
    "name",
    [RULES_TASK, SCENARIOS_TASK, JUDGE_TASK, PATCHES_TASK],
)
async def test_a_run_that_is_cancelled_leaves_nothing_running(name: str) -> None:
    script = Script(rules=(WIDE,), judgements=(blames("outside", "rule"),), patches=(UPDATE,))
    model = FakeGateway(
        lambda request: [SILENCE] if task_of(request) == name else script(request),
    )
    compiler = PolicyCompiler(model, InMemoryArtifactCache())

    async def follow() -> None:
        async with closing(compiler.compile(ORDER)) as events:
            async for _ in events:
                pass

    task = asyncio.create_task(follow())
    await model.silent.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert (task.cancelled(), model.running) == (True, 0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_who_leaves_early_leaves_nothing_running() -> None:
    model = FakeGateway(Many())
    events: list[CompileEvent] = []
    async with closing(
        PolicyCompiler(model, InMemoryArtifactCache()).compile(replace(ORDER, tools=TOOLS)),
    ) as stream:
        async for event in stream:
            events.append(event)
            break
    assert isinstance(events[0], CompileProgress)
    assert model.running == 0


# ---- the suite that is left


async def test_the_suite_holds_what_is_handwritten_what_adds_something_and_what_was_missing() -> None:
    idle = tuple(generated_scenario(f"inside {number}", "allow", at=f"/open/{number}") for number in range(5))
    own = replace(generated_scenario("own", "allow", at="/open"), source=ScenarioOrigin.HANDWRITTEN)
    done = await ran(Script(scenarios=((*FINE, *idle),)), handwritten=(own,), directed=True)
    sources = [one.source for one in done.compiled.scenarios]
    assert sources == sorted(sources, key=BY_SOURCE.index)
    assert done.names[0] == own.description
    assert not {one.description for one in idle} & {*done.names}
    mutation = done.compiled.verification.mutation
    assert mutation is not None
    assert mutation.survived == 0


async def test_nothing_is_added_or_measured_that_is_not_wanted() -> None:
    done = await ran(directed=False, mutation=False)
    assert {one.source for one in done.compiled.scenarios} == {ScenarioOrigin.GENERATED}
    assert done.compiled.verification.mutation is None
