"""Compiling policies over a real loopback connection: resumed, repeated, cut off, refused."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.engine.policies.types import ToolRequest
from peripety.errors import (
    AlreadyExistsError,
    DeadlineError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from peripety.gateway.types.request import Budget
from peripety.policy.events import PolicyCompileFailed
from peripety.policy.types import (
    AnnotatedTool,
    CompileLimits,
    CompileOrder,
    Expectation,
    ScenarioOrigin,
    TestScenario,
)
from peripety.rpc.channel import CALLER_KEY
from support.policy.policies import FakeCompiler, compiled_policy, opened_store, serving_policies
from support.servers.apps import new_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub


TOOL = pb.ToolAnnotation(server_name="alpha", tool_name="read")


@pytest.fixture
def compiler() -> FakeCompiler:
    return FakeCompiler()


@pytest.fixture
async def stub(database_url: str, compiler: FakeCompiler) -> AsyncIterator[PolicyServiceAsyncStub]:
    async with serving_policies(database_url, compiler) as opened:
        yield opened


def asking(**fields: Any) -> pb.CompilePolicyRequest:
    usual: dict[str, Any] = {
        "request_id": new_id(),
        "constitution": "whoever reads below /a may",
        "tools": [TOOL],
    }
    return pb.CompilePolicyRequest(**(usual | fields))


async def all_of(
    stub: PolicyServiceAsyncStub,
    request: pb.CompilePolicyRequest,
    **options: Any,
) -> list[pb.CompilePolicyResponse]:
    return [response async for response in stub.CompilePolicy(request, **options)]


def as_caller(name: str) -> dict[str, Any]:
    return {"metadata": ((CALLER_KEY, name),)}


async def listed(stub: PolicyServiceAsyncStub) -> int:
    return len((await stub.ListPolicies(pb.ListPoliciesRequest())).policies)


async def test_every_event_is_told_and_the_result_is_stored(stub: PolicyServiceAsyncStub) -> None:
    events = await all_of(stub, asking())
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert [event.WhichOneof("event") for event in events] == [
        "progress",
        "rules_written",
        "scenarios_written",
        "verified",
        *["decided"] * 4,
        "compiled",
    ]
    progress, rules, scenarios, verified = events[:4]
    assert (progress.progress.phase, progress.progress.fraction) == (pb.COMPILE_PHASE_RULES, 0.1)
    assert rules.rules_written.findings[0].code == "CODE"
    assert [one.expected for one in scenarios.scenarios_written.scenarios] == [
        pb.EXPECTATION_ALLOW,
        pb.EXPECTATION_DENY,
    ]
    assert scenarios.scenarios_written.turn.usage.calls == 2
    assert (verified.verified.passed, verified.verified.failed) == (2, 0)
    last = events[-1].compiled
    assert (last.from_cache, last.usage.calls, len(last.turns)) == (False, 2, 1)
    assert last.findings[0].severity == common.SEVERITY_WARNING
    kept = await stub.GetPolicy(pb.GetPolicyRequest(policy_id=last.policy.policy_id))
    assert kept.policy == last.policy
    assert list(kept.policy.audit) == [event.decided for event in events[4:8]]


async def test_an_order_reaches_the_compiler_as_it_was_given(
    stub: PolicyServiceAsyncStub,
    compiler: FakeCompiler,
) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    await all_of(
        stub,
        asking(
            tools=[
                pb.ToolAnnotation(
                    server_name="alpha",
                    tool_name="read",
                    description="reads",
                    input_schema=json.dumps(schema).encode(),
                    argument_roles=[pb.ArgumentRole(path="/path", role="source_path")],
                    read_only=True,
                ),
            ],
            handwritten_scenarios=[
                pb.PolicyScenario(
                    scenario_id="mine",
                    description="a",
                    request=pb.PolicyRequest(
                        server_name="alpha",
                        tool_name="read",
                        arguments=b'{"path":"/a"}',
                        roles=["x"],
                    ),
                    expected=pb.EXPECTATION_NOT_ALLOW,
                    reasoning="b",
                    source=pb.SCENARIO_SOURCE_GENERATED,
                    rule_id="c",
                ),
            ],
            options=pb.CompileOptions(max_repairs=0, max_turns=4, replace_corrected=True, directed=False),
            model="x/y",
            budget=common.Budget(max_calls=7),
            foundation=json.dumps({"lists": {"l": {"kind": "path", "values": ["/a"]}}}).encode(),
        ),
    )
    assert compiler.orders == [
        CompileOrder(
            "whoever reads below /a may",
            (AnnotatedTool("alpha", "read", "reads", schema, (("/path", "source_path"),), read_only=True),),
            (
                TestScenario(
                    "a",
                    ToolRequest("alpha", "read", {"path": "/a"}, ("x",)),
                    Expectation.NOT_ALLOW,
                    "b",
                    ScenarioOrigin.HANDWRITTEN,
                    "c",
                    "mine",
                ),
            ),
            (),
            {"l": {"kind": "path", "values": ["/a"]}},
            CompileLimits(repairs=0, turns=4, budget=Budget(max_calls=7)),
            replace_corrected=True,
            directed=False,
            mutation=True,
            model="x/y",
        ),
    ]


async def test_a_request_that_is_sent_again_is_answered_again_from_where_it_broke_off(
    stub: PolicyServiceAsyncStub,
    compiler: FakeCompiler,
) -> None:
    request = asking()
    events = await all_of(stub, request)
    assert await all_of(stub, request) == events
    request.after_sequence = 3
    assert await all_of(stub, request) == events[3:]
    assert compiler.compiled == 1


async def test_two_that_send_the_same_request_at_once_share_the_work(
    stub: PolicyServiceAsyncStub,
    compiler: FakeCompiler,
) -> None:
    request = asking()
    one, other = await asyncio.gather(all_of(stub, request), all_of(stub, request))
    assert one == other
    assert compiler.compiled == 1


async def test_work_that_nobody_has_on_record_is_not_continued(stub: PolicyServiceAsyncStub) -> None:
    with pytest.raises(NotFoundError) as caught:
        await all_of(stub, asking(after_sequence=2))
    assert caught.value.code == "WORK_NOT_FOUND"


async def test_an_id_names_one_request(stub: PolicyServiceAsyncStub) -> None:
    request = asking()
    await all_of(stub, request)
    request.constitution = "more"
    with pytest.raises(AlreadyExistsError) as caught:
        await all_of(stub, request)
    assert caught.value.code == "REQUEST_ID_REUSED"


async def test_the_same_order_under_another_id_costs_nothing_again(
    stub: PolicyServiceAsyncStub,
    compiler: FakeCompiler,
) -> None:
    first = (await all_of(stub, asking()))[-1].compiled
    (only,) = await all_of(stub, asking())
    assert only.sequence == 1
    again = only.compiled
    assert (again.from_cache, again.usage.calls, len(again.turns)) == (True, 0, 0)
    assert again.policy == first.policy
    assert compiler.compiled == 1


async def test_a_policy_gets_versions(database_url: str, stub: PolicyServiceAsyncStub) -> None:
    async with opened_store(database_url) as (store, database), database.write() as connection:
        before = await store.save(compiled_policy(name="Before"), "i", connection)
    last = (await all_of(stub, asking(policy_id=before.policy_id)))[-1].compiled
    assert last.policy.policy_id == before.policy_id
    latest = await stub.GetPolicy(pb.GetPolicyRequest(policy_id=before.policy_id))
    assert latest.policy.policy_hash == last.policy.policy_hash != before.policy_hash
    assert await listed(stub) == 1
    versions = (
        await stub.ListPolicyVersions(pb.ListPolicyVersionsRequest(policy_id=before.policy_id))
    ).versions
    assert [one.policy_hash for one in versions] == [last.policy.policy_hash, before.policy_hash]
    assert {one.policy_id for one in versions} == {before.policy_id}
    with pytest.raises(NotFoundError):
        await all_of(stub, asking(policy_id="pol_0"))


@pytest.mark.parametrize("way", ["cut", "deadline"])
async def test_work_survives_its_caller_and_the_same_request_finds_it(database_url: str, way: str) -> None:
    pause = asyncio.Event()
    compiler = FakeCompiler(pause=pause)
    async with serving_policies(database_url, compiler) as stub:
        request = asking()
        if way == "cut":
            call = stub.CompilePolicy(request)
            assert (await anext(aiter(call))).WhichOneof("event") == "progress"
            call.cancel()
        else:
            with pytest.raises(DeadlineError):
                await all_of(stub, request, timeout=1.0)
        assert await listed(stub) == 0
        pause.set()
        events = await all_of(stub, request)
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        assert events[-1].HasField("compiled")
        assert (compiler.compiled, compiler.left, await listed(stub)) == (1, 0, 1)


async def test_a_compilation_is_followed_listed_and_cancelled_by_its_caller_alone(database_url: str) -> None:
    compiler = FakeCompiler(pause=asyncio.Event())
    one, two = as_caller("one"), as_caller("two")
    async with serving_policies(database_url, compiler) as stub:
        request = asking(constitution="# Rules\n\nwhoever reads below /a may")
        call = stub.CompilePolicy(request, **one)
        first = await anext(aiter(call))
        call.cancel()
        (run,) = (await stub.ListPolicyRuns(pb.ListPolicyRunsRequest(), **one)).runs
        assert (run.run_id, run.method, run.state) == (
            first.run_id,
            "CompilePolicy",
            common.CALL_RUN_STATE_RUNNING,
        )
        assert run.title == "# Rules whoever reads below /a may"
        assert not (await stub.ListPolicyRuns(pb.ListPolicyRunsRequest(), **two)).runs
        read = pb.GetPolicyRunRequest(run_id=run.run_id)
        with pytest.raises(NotFoundError):
            await stub.GetPolicyRun(read, **two)
        recorded = pb.ResumePolicyRunRequest(run_id=run.run_id, recorded_only=True)
        assert [response.event async for response in stub.ResumePolicyRun(recorded, **one)] == [first]
        cancellation = pb.CancelPolicyRunRequest(request_id=new_id(), run_id=run.run_id)
        cancelled = (await stub.CancelPolicyRun(cancellation, **one)).run
        assert cancelled.state == common.CALL_RUN_STATE_CANCELLED
        assert (compiler.compiled, compiler.left) == (1, 1)
        with pytest.raises(FailedPreconditionError, match="cancelled"):
            await all_of(stub, request, **one)
        await stub.DeletePolicyRun(pb.DeletePolicyRunRequest(request_id=new_id(), run_id=run.run_id), **one)
        with pytest.raises(NotFoundError):
            await stub.GetPolicyRun(read, **one)


async def test_what_could_not_be_brought_together_is_told_again_and_not_stored(database_url: str) -> None:
    result = compiled_policy()
    failed = PolicyCompileFailed(
        result.findings,
        b"",
        result.scenarios,
        result.verification,
        result.audit,
        result.spent,
    )
    compiler = FakeCompiler(failed)
    async with serving_policies(database_url, compiler) as stub:
        request = asking()
        events = await all_of(stub, request)
        told = events[-1].failed
        assert [finding.code for finding in told.findings] == ["CODE"]
        assert (told.document, len(told.scenarios), told.usage.calls) == (b"", 2, 2)
        assert await all_of(stub, request) == events
        assert (compiler.compiled, await listed(stub)) == (1, 0)


async def test_a_provider_that_does_not_answer_leaves_nothing(database_url: str) -> None:
    compiler = FakeCompiler(UnavailableError("nobody answers", code="PROVIDER_UNAVAILABLE"))
    async with serving_policies(database_url, compiler) as stub:
        request = asking()
        for _ in range(2):
            with pytest.raises(UnavailableError) as caught:
                await all_of(stub, request)
            assert caught.value.code == "PROVIDER_UNAVAILABLE"
        assert (compiler.compiled, await listed(stub)) == (2, 0)


SCENARIO = pb.PolicyScenario(
    description="a",
    request=pb.PolicyRequest(server_name="alpha", tool_name="read"),
    expected=pb.EXPECTATION_DENY,
)


def scenario(**changed: Any) -> pb.PolicyScenario:
    altered = pb.PolicyScenario()
    altered.CopyFrom(SCENARIO)
    for name in changed:
        altered.ClearField(name)  # type: ignore[arg-type]  # the names are those of the message
    altered.MergeFrom(pb.PolicyScenario(**changed))
    return altered


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"request_id": "me"}, "request_id"),
        ({"after_sequence": -1}, "after_sequence"),
        ({"tools": [pb.ToolAnnotation(tool_name="a", input_schema=b"[")]}, "tools[0].input_schema"),
        ({"budget": common.Budget(max_calls=-1)}, "budget.max_calls"),
        ({"foundation": b"{"}, "foundation"),
        ({"foundation": b"[]"}, "foundation"),
        ({"foundation": b'{"rules":[]}'}, "foundation"),
        ({"foundation": b'{"lists":{},"lists":{}}'}, "foundation"),
        ({"foundation": b'{"lists":[]}'}, "foundation"),
        ({"foundation": b'{"invariants":{}}'}, "foundation"),
        ({"handwritten_scenarios": [scenario(description=" ")]}, "handwritten_scenarios[0].description"),
        ({"handwritten_scenarios": [scenario(expected=0)]}, "handwritten_scenarios[0].expected"),
        ({"handwritten_scenarios": [scenario(source=9)]}, "handwritten_scenarios[0].source"),
        (
            {"handwritten_scenarios": [scenario(request=pb.PolicyRequest(server_name="a"))]},
            "handwritten_scenarios[0].request.tool_name",
        ),
        ({"handwritten_scenarios": [SCENARIO, SCENARIO]}, "handwritten_scenarios[1].description"),
        (
            {
                "handwritten_scenarios": [
                    scenario(scenario_id="x"),
                    scenario(scenario_id="x", description="b"),
                ],
            },
            "handwritten_scenarios[1].scenario_id",
        ),
    ],
)
async def test_a_wrong_request_is_refused_with_the_field_to_mend(
    stub: PolicyServiceAsyncStub,
    compiler: FakeCompiler,
    fields: dict[str, Any],
    field: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await all_of(stub, asking(**fields))
    assert [violation.field for violation in caught.value.violations] == [field]
    assert compiler.compiled == 0
