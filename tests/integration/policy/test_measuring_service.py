"""Analysis of rules and scenarios without any model, over a real loopback connection."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.api.common.v1 import quality_pb2 as quality
from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.errors import InvalidArgumentError, NotFoundError, PeripetyError
from support.policy.policies import (
    FakeCompiler,
    as_json,
    compiled_policy,
    opened_store,
    policy_document,
    serving_policies,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub
    from peripety.policy.types import CompiledPolicy


SOURCE = pb.PolicySource(document=policy_document())
WRONG = pb.PolicySource(document=policy_document(policy_version="9"))


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'test.db'}"


@pytest.fixture
async def stored(database: str) -> CompiledPolicy:
    async with opened_store(database) as (store, opened), opened.write() as connection:
        return await store.save(compiled_policy(), "i", connection)


@pytest.fixture
async def stub(database: str, stored: CompiledPolicy) -> AsyncIterator[PolicyServiceAsyncStub]:
    async with serving_policies(database, FakeCompiler()) as opened:
        yield opened


def scenario(
    description: str,
    expected: pb.Expectation.ValueType,
    tool: str = "read",
    **arguments: Any,
) -> pb.PolicyScenario:
    return pb.PolicyScenario(
        description=description,
        request=pb.PolicyRequest(server_name="alpha", tool_name=tool, arguments=as_json(arguments)),
        expected=expected,
    )


SUITE = [
    scenario("a", pb.EXPECTATION_ALLOW, path="/a/b"),
    scenario("b", pb.EXPECTATION_NOT_ALLOW, path="/e"),
    scenario("c", pb.EXPECTATION_ALLOW, path="/e"),
]


def of(document: bytes, request: pb.PolicyRequest) -> str:
    """Return the decision of a policy about a request that a server reported."""
    call = engine.ToolRequest(
        request.server_name,
        request.tool_name,
        engine.loads(request.arguments),
        tuple(request.roles),
    )
    return engine.compile_policy(document).decide(call).decision.name


async def test_scenarios_are_run_and_those_that_fail_are_told(stub: PolicyServiceAsyncStub) -> None:
    suite = [*SUITE]
    suite[0].scenario_id = "mine"
    told = await stub.VerifyPolicy(pb.VerifyPolicyRequest(policy=SOURCE, scenarios=suite))
    report = told.verification
    assert (report.passed, report.failed, len(told.findings)) == (2, 1, 0)
    assert [result.passed for result in report.results] == [True, True, False]
    assert report.results[0].scenario_id == "mine"
    assert len({result.scenario_id for result in report.results}) == 3
    assert report.results[2].actual.decision == pb.DECISION_DENY
    assert {one.kind for one in report.coverage} == {"rule", "condition_decision", "boundary"}
    assert not report.HasField("mutation")


async def test_the_score_of_mutants_comes_when_it_is_asked_for(stub: PolicyServiceAsyncStub) -> None:
    request = pb.VerifyPolicyRequest(policy=SOURCE, scenarios=SUITE, mutation=True)
    score = (await stub.VerifyPolicy(request)).verification.mutation
    assert score.killed > 0 < score.survived
    assert score.score == score.killed / (score.killed + score.survived)


async def test_a_stored_policy_is_verified_by_its_own_scenarios(
    stub: PolicyServiceAsyncStub,
    stored: CompiledPolicy,
) -> None:
    source = pb.PolicySource(policy_id=stored.policy_id)
    report = (await stub.VerifyPolicy(pb.VerifyPolicyRequest(policy=source))).verification
    assert (report.passed, report.failed) == (2, 0)
    assert report.results[0].scenario_id == "mine"


async def test_rules_that_do_nothing_are_told(stub: PolicyServiceAsyncStub) -> None:
    rules = compiled_policy().document
    again = {**engine.loads(rules)["rules"][0], "id": "again"}
    source = pb.PolicySource(document=policy_document(rules=[*engine.loads(rules)["rules"], again]))
    told = await stub.AnalyzePolicy(pb.AnalyzePolicyRequest(policy=source))
    (issue,) = [one for one in told.issues if one.rule_id == "again"]
    assert issue.kind == pb.RULE_ISSUE_KIND_SHADOWED
    assert list(issue.caused_by) == ["reads"]
    assert issue.message
    assert of(source.document, issue.witness) == "ALLOW"


async def test_rules_are_explained_by_sentence_with_calls_on_both_sides(stub: PolicyServiceAsyncStub) -> None:
    told = await stub.ExplainPolicy(pb.ExplainPolicyRequest(policy=SOURCE, constitution="Gamma is new."))
    *others, last = told.sentences
    assert (last.sentence, len(last.rules)) == ("Gamma is new.", 0)
    first = others[0].rules[0]
    assert of(SOURCE.document, first.decided.request) == pb.Decision.Name(first.decided.decision.decision)[9:]
    assert of(SOURCE.document, first.nearest.request) == pb.Decision.Name(first.nearest.decision.decision)[9:]
    assert first.nearest.decision.rule_id != first.rule_id


async def test_the_conditions_of_a_tool_remain_for_open_arguments(stub: PolicyServiceAsyncStub) -> None:
    known = pb.PolicyRequest(server_name="alpha", tool_name="read")
    told = await stub.DecidePartially(pb.DecidePartiallyRequest(policy=SOURCE, known=known))
    assert [(one.rule_id, pb.Decision.Name(one.decision)) for one in told.rules] == [
        ("structural-z", "DECISION_DENY"),
        ("reads", "DECISION_ALLOW"),
    ]
    assert engine.loads(told.rules[1].condition).keys() == {"arguments"}
    assert not told.HasField("decision")
    known.arguments = b'{"path": "/a/b"}'
    told = await stub.DecidePartially(pb.DecidePartiallyRequest(policy=SOURCE, known=known))
    assert [(one.rule_id, one.condition) for one in told.rules] == [("reads", b"{}")]
    assert told.decision == pb.DECISION_ALLOW
    known.arguments = b"[]"
    with pytest.raises(InvalidArgumentError) as caught:
        await stub.DecidePartially(pb.DecidePartiallyRequest(policy=SOURCE, known=known))
    assert [one.field for one in caught.value.violations] == ["known.arguments"]


async def test_what_two_policies_decide_differently_is_told_with_requests_that_show_it(
    stub: PolicyServiceAsyncStub,
    stored: CompiledPolicy,
) -> None:
    rules = engine.loads(policy_document())["rules"]
    after = policy_document(rules=[{**rules[0], "when": {"tools": ["read"]}}, rules[1]])
    by_id = pb.PolicySource(policy_id=stored.policy_id)
    request = pb.DiffPoliciesRequest(before=by_id, after=pb.PolicySource(document=after))
    told = await stub.DiffPolicies(request)
    assert not told.equivalent
    assert told.changes[0].after.decision == pb.DECISION_ALLOW
    for change in told.changes:
        for decided, document in ((change.before, stored.compiled.document), (change.after, after)):
            assert pb.Decision.Name(decided.decision) == f"DECISION_{of(document, change.witness)}"
    (patch,) = told.rule_changes
    assert (patch.kind, patch.rule_id, patch.position) == (pb.RULE_PATCH_KIND_UPDATE, "reads", 1)
    request.max_examples = 1
    assert len((await stub.DiffPolicies(request)).changes) == 1
    same = await stub.DiffPolicies(pb.DiffPoliciesRequest(before=by_id, after=SOURCE))
    assert same.equivalent
    assert not same.changes


async def test_two_versions_of_one_policy_are_compared(
    stub: PolicyServiceAsyncStub, stored: CompiledPolicy, database: str
) -> None:
    rules = engine.loads(stored.compiled.document)["rules"]
    spec = engine.loads(stored.compiled.document) | {"rules": rules[:1]}
    changed = replace(stored.compiled, document=engine.canonicalize(spec))
    async with opened_store(database) as (store, opened), opened.write() as connection:
        later = await store.save(changed, "i", connection, version_of=stored.policy_id)
    before = pb.PolicySource(policy_id=stored.policy_id, policy_hash=stored.policy_hash)
    latest = pb.PolicySource(policy_id=stored.policy_id)
    told = await stub.DiffPolicies(pb.DiffPoliciesRequest(before=before, after=latest))
    assert not told.equivalent
    documents = stored.compiled.document, later.compiled.document
    for change in told.changes:
        for decided, document in zip((change.before, change.after), documents, strict=True):
            assert pb.Decision.Name(decided.decision) == f"DECISION_{of(document, change.witness)}"
    assert {patch.kind for patch in told.rule_changes} == {pb.RULE_PATCH_KIND_DELETE}
    back = pb.PolicySource(policy_id=stored.policy_id, policy_hash=later.policy_hash)
    assert (await stub.DiffPolicies(pb.DiffPoliciesRequest(before=back, after=latest))).equivalent
    unknown = pb.PolicySource(policy_id=stored.policy_id, policy_hash="0" * 64)
    with pytest.raises(NotFoundError, match="version"):
        await stub.DiffPolicies(pb.DiffPoliciesRequest(before=unknown, after=latest))
    both = pb.PolicySource(document=stored.compiled.document, policy_hash=stored.policy_hash)
    with pytest.raises(InvalidArgumentError, match="policy_hash"):
        await stub.DiffPolicies(pb.DiffPoliciesRequest(before=both, after=latest))


async def test_mutants_are_told_as_they_are_done_and_counted_in_the_end(
    stub: PolicyServiceAsyncStub,
    stored: CompiledPolicy,
) -> None:
    source = pb.PolicySource(policy_id=stored.policy_id)
    events = [event async for event in stub.RunMutationTests(pb.RunMutationTestsRequest(policy=source))]
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    mutants = [mutant for event in events[:-1] for mutant in event.mutants.mutants]
    assert {event.mutants.total for event in events[:-1]} == {len(mutants)}
    score = events[-1].scored.score
    counted = [mutant.outcome for mutant in mutants]
    assert score.killed == counted.count(quality.MUTANT_OUTCOME_KILLED) > 0
    assert score.survived == counted.count(quality.MUTANT_OUTCOME_SURVIVED)
    assert len({mutant.mutant_id for mutant in mutants}) == len(mutants)
    one = [
        event
        async for event in stub.RunMutationTests(
            pb.RunMutationTestsRequest(policy=source, operators=[mutants[0].operator]),
        )
    ]
    assert {mutant.operator for event in one[:-1] for mutant in event.mutants.mutants} == {
        mutants[0].operator,
    }


async def test_an_unknown_operator_is_refused(stub: PolicyServiceAsyncStub) -> None:
    request = pb.RunMutationTestsRequest(policy=SOURCE, scenarios=SUITE, operators=["oops"])
    with pytest.raises(InvalidArgumentError):
        _ = [event async for event in stub.RunMutationTests(request)]


async def test_scenarios_are_made_for_what_given_ones_miss(stub: PolicyServiceAsyncStub) -> None:
    async def covered(
        **fields: Any,
    ) -> tuple[list[pb.PolicyScenario], pb.GenerateCoverageScenariosResponse.Covered]:
        request = pb.GenerateCoverageScenariosRequest(policy=SOURCE, **fields)
        events = [event async for event in stub.GenerateCoverageScenarios(request)]
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        return [event.scenario for event in events[:-1]], events[-1].covered

    made, everything = await covered()
    assert made
    for one in made:
        assert one.source == pb.SCENARIO_SOURCE_DIRECTED
        name = f"EXPECTATION_{of(SOURCE.document, one.request)}"
        assert pb.Expectation.Name(one.expected) == name
    assert everything.mutation.score > 0.9
    report = (await stub.VerifyPolicy(pb.VerifyPolicyRequest(policy=SOURCE, scenarios=made))).verification
    assert report.failed == 0
    assert list(report.coverage) == list(everything.coverage)
    again, _ = await covered(scenarios=made)
    assert len(again) < len(made)
    assert len((await covered(max_scenarios=1))[0]) == 1


async def first(call: Any) -> Any:
    return await anext(aiter(call))


CALLS: dict[str, Callable[[PolicyServiceAsyncStub, pb.PolicySource], Awaitable[Any]]] = {
    "verify": lambda stub, source: stub.VerifyPolicy(pb.VerifyPolicyRequest(policy=source)),
    "analyze": lambda stub, source: stub.AnalyzePolicy(pb.AnalyzePolicyRequest(policy=source)),
    "explain": lambda stub, source: stub.ExplainPolicy(pb.ExplainPolicyRequest(policy=source)),
    "diff": lambda stub, source: stub.DiffPolicies(pb.DiffPoliciesRequest(before=SOURCE, after=source)),
    "mutate": lambda stub, source: first(stub.RunMutationTests(pb.RunMutationTestsRequest(policy=source))),
    "cover": lambda stub, source: first(
        stub.GenerateCoverageScenarios(pb.GenerateCoverageScenariosRequest(policy=source)),
    ),
}


@pytest.mark.parametrize("call", CALLS)
async def test_what_is_wrong_with_a_document_is_told_in_the_body(
    stub: PolicyServiceAsyncStub,
    call: str,
) -> None:
    told = await CALLS[call](stub, WRONG)
    told = {"mutate": lambda: told.scored, "cover": lambda: told.covered}.get(call, lambda: told)()
    (finding,) = told.findings
    assert finding.path == ("/after/policy_version" if call == "diff" else "/policy_version")
    assert finding.remedy


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("source", "kind"),
    [
        (pb.PolicySource(), InvalidArgumentError),
        (pb.PolicySource(document=b""), InvalidArgumentError),
        (pb.PolicySource(policy_id="pol_0"), NotFoundError),
    ],
)
async def test_a_policy_that_is_not_there_is_an_error(
    stub: PolicyServiceAsyncStub,
    call: str,
    source: pb.PolicySource,
    kind: type[PeripetyError],
) -> None:
    with pytest.raises(kind):
        await CALLS[call](stub, source)


@pytest.mark.parametrize(
    ("scenarios", "field"),
    [
        ([SUITE[0], SUITE[0]], "scenarios[1].description"),
        ([pb.PolicyScenario(description="a")], "scenarios[0].expected"),
        (
            [
                SUITE[0],
                pb.PolicyScenario(
                    description="x",
                    expected=pb.EXPECTATION_DENY,
                    request=pb.PolicyRequest(
                        server_name="alpha",
                        tool_name="read",
                        arguments=b'{"path":9007199254740993}',
                    ),
                ),
            ],
            "scenarios[1].request.arguments.path",
        ),
        ([SUITE[0]] * 10_001, "scenarios"),
    ],
)
async def test_wrong_scenarios_are_refused_with_the_field_to_mend(
    stub: PolicyServiceAsyncStub,
    scenarios: list[pb.PolicyScenario],
    field: str,
) -> None:
    for call in (
        stub.VerifyPolicy(pb.VerifyPolicyRequest(policy=SOURCE, scenarios=scenarios)),
        first(stub.RunMutationTests(pb.RunMutationTestsRequest(policy=SOURCE, scenarios=scenarios))),
        first(
            stub.GenerateCoverageScenarios(
                pb.GenerateCoverageScenariosRequest(policy=SOURCE, scenarios=scenarios),
            ),
        ),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            await call
        assert [violation.field for violation in caught.value.violations] == [field]


async def test_numbers_below_nothing_are_refused(stub: PolicyServiceAsyncStub) -> None:
    for call in (
        stub.DiffPolicies(pb.DiffPoliciesRequest(before=SOURCE, after=SOURCE, max_examples=-1)),
        first(
            stub.GenerateCoverageScenarios(
                pb.GenerateCoverageScenariosRequest(policy=SOURCE, max_scenarios=-1),
            ),
        ),
    ):
        with pytest.raises(InvalidArgumentError):
            await call
