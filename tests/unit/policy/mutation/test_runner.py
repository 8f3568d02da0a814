from __future__ import annotations

import json
from random import Random

import pytest

from peripety.core.mutation_testing import Mutant, MutantOutcome
from peripety.engine import compile_policy
from peripety.errors import InvalidArgumentError, SpecError
from peripety.policy.mutation.operators import iter_mutations
from peripety.policy.mutation.runner import mutation_score, run_mutants
from peripety.policy.rule_paths import argument_violations
from peripety.policy.verification.coverage import EvaluatedSuite
from support.engine.policies import allow, deny, matcher, request, tiny_policy
from support.engine.policy_generators import hostile_requests, random_policy, random_requests
from support.policy.policies import expecting, scenario

POLICY = tiny_policy(
    allow("small", tools=["read"], logic={"<": [{"var": "arguments.size"}, 10]}),
    deny("rest", tools=["read", "send"]),
)


def mutants(*scenarios: object, operators: tuple[str, ...] = ()) -> dict[str, Mutant]:
    blocks = run_mutants(POLICY, scenarios, operators)  # type: ignore[arg-type]
    return {mutant.mutant_id: mutant for block in blocks for mutant in block.mutants}


def test_a_mutant_is_killed_by_those_that_pass_on_the_policy_and_fail_on_it() -> None:
    inside, outside = scenario("nine", request(size=9), "allow"), scenario("ten", request(size=10), "deny")
    wrong = scenario("wrong", request(size=9), "deny")
    found = mutants(inside, outside, wrong, operators=("shift_number", "swap_comparison"))
    killed_by = {mutant_id: mutant.killed_by for mutant_id, mutant in found.items()}
    assert killed_by == {
        "swap_comparison:/rules/0/when/logic:1": ("ten",),
        "shift_number:/rules/0/when/logic/</1:1": ("nine",),
        "shift_number:/rules/0/when/logic/</1:2": ("ten",),
    }
    assert {mutant.outcome for mutant in found.values()} == {MutantOutcome.KILLED}


def test_a_mutant_that_nobody_notices_survives() -> None:
    found = mutants(scenario("five", request(size=5), "allow"), operators=("shift_number",))
    assert {mutant.outcome for mutant in found.values()} == {MutantOutcome.SURVIVED}


def test_a_mutant_that_means_the_same_is_equivalent_and_does_not_count() -> None:
    found = mutants(operators=("drop_rule",))
    assert [mutant.outcome for mutant in found.values()] == [MutantOutcome.SURVIVED, MutantOutcome.EQUIVALENT]
    scored = mutation_score(found.values())
    assert (scored.killed, scored.survived, scored.equivalent, scored.score) == (0, 1, 1, 0.0)
    assert [mutant.mutant_id for mutant in scored.survivors] == ["drop_rule:/rules/0:1"]


def test_a_mutant_shows_what_it_changed() -> None:
    changed = mutants(operators=("shift_number",))["shift_number:/rules/0/when/logic/</1:1"]
    assert (changed.operator, changed.path) == ("shift_number", "/rules/0/when/logic/</1")
    assert (changed.before, changed.after) == (b"10", b"9")
    gone = mutants(operators=("drop_tool",))["drop_tool:/rules/1/when/tools/1:1"]
    assert (gone.before, gone.after) == (b'"send"', None)


def test_what_was_not_written_has_nothing_before() -> None:
    policy = tiny_policy(allow("a", arguments=[matcher("source", "path", "/a")]))
    [block] = run_mutants(policy, [], ["change_quantifier"])
    assert [(mutant.before, mutant.after) for mutant in block.mutants] == [
        (None, b'"any"'),
        (None, b'"none"'),
        (None, b'"not_all"'),
    ]


def test_mutants_come_in_blocks_that_say_how_many_there_are() -> None:
    rules = [allow(f"r{n}", tools=["read"], logic={"==": [{"var": "arguments.size"}, n]}) for n in range(130)]
    blocks = [*run_mutants(tiny_policy(*rules), [])]
    assert len(blocks) > 1
    assert {block.total for block in blocks} == {sum(len(block.mutants) for block in blocks)}


def test_of_very_many_killers_some_are_named() -> None:
    many = [scenario(f"s{n}", request(size=9), "allow") for n in range(500)]
    assert len(mutants(*many, operators=("drop_rule",))["drop_rule:/rules/0:1"].killed_by) == 100


def test_an_unknown_operator_is_refused_before_anything_is_run() -> None:
    with pytest.raises(InvalidArgumentError, match="nonsense"):
        run_mutants(POLICY, [], ["nonsense"])


def test_many_mutants_of_large_rules_are_more_than_one_document_can_hold() -> None:
    entries = [f"/a/{number}" for number in range(1000)]
    rules = [
        allow(f"r{n}", arguments=[matcher("source", "path", *entries, quantifier="any")], roles=["x"])
        for n in range(8)
    ]
    policy = tiny_policy(*rules)
    outside = expecting(policy, request(path="/a", roles=["x"]))
    killed = [mutant for block in run_mutants(policy, outside, ["widen_path"]) for mutant in block.mutants]
    assert len(killed) == 8 * 32
    assert {mutant.outcome for mutant in killed} == {MutantOutcome.KILLED}


def test_a_rule_as_deep_as_a_document_can_be_is_mutated_as_well() -> None:
    logic: dict[str, object] = {"<": [{"var": "arguments.size"}, 5]}
    while True:
        try:
            policy = tiny_policy(allow("deep", tools=["read"], logic=logic))
        except SpecError:
            break
        logic = {"!": logic}
    [block] = run_mutants(policy, expecting(policy, request(size=1), request(size=9)), ["negate_logic"])
    assert {mutant.outcome for mutant in block.mutants} == {MutantOutcome.KILLED}


@pytest.mark.parametrize("seed", range(6))
def test_no_request_that_a_tool_takes_tells_equivalent_mutants_from_the_policy(seed: int) -> None:
    random = Random(seed)
    spec = random_policy(random, "small")
    policy = compile_policy(json.dumps(spec))
    schemas = {(tool["server_name"], tool["tool_name"]): tool.get("input_schema") for tool in spec["tools"]}
    requests = [
        asked
        for asked in (*random_requests(random, spec, 300), *hostile_requests(random, spec, 300))
        if (asked.server_name, asked.tool_name) in schemas
        and not argument_violations(schemas[asked.server_name, asked.tool_name], asked.arguments)
    ]
    outcomes = {
        mutant.mutant_id: mutant.outcome for block in run_mutants(policy, []) for mutant in block.mutants
    }
    equivalent = [
        mutation
        for mutation in iter_mutations(policy)
        if outcomes[mutation.mutant_id] is MutantOutcome.EQUIVALENT
    ]
    noticed = EvaluatedSuite(policy, expecting(policy, *requests)).failing_by_change(
        mutation.rules for mutation in equivalent
    )
    assert [m.mutant_id for m, by in zip(equivalent, noticed, strict=True) if by] == []
