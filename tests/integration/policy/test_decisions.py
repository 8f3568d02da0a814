"""Decisions and stored policies, over a real loopback connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.errors import InvalidArgumentError, NotFoundError
from peripety.rpc.channel import open_channel
from peripety.server.app import serve
from support.policy.policies import as_json, compiled_policy, decided, named, opened_store, policy_document
from support.servers.apps import config_for, new_id

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub
    from peripety.policy.types import CompiledPolicy


POLICY = pb.PolicySource(document=policy_document())


@pytest.fixture
async def stored(tmp_path: Path) -> CompiledPolicy:
    """A policy in the database, before anything is served."""
    url = config_for(tmp_path).database_url.get_secret_value()
    async with opened_store(url) as (store, database), database.write() as connection:
        return await store.save(compiled_policy(), "i", connection)


@pytest.fixture
async def stub(tmp_path: Path, stored: CompiledPolicy) -> AsyncIterator[PolicyServiceAsyncStub]:
    async with (
        serve(config_for(tmp_path), services={"gateway", "policies"}) as app,
        open_channel(app.address) as channel,
    ):
        yield PolicyServiceStub(channel)


def request(tool: str = "read", *, server: str = "alpha", **arguments: Any) -> pb.PolicyRequest:
    return pb.PolicyRequest(server_name=server, tool_name=tool, arguments=as_json(arguments))


def items(*requests: pb.PolicyRequest, policy: pb.PolicySource | None = POLICY) -> pb.DecideManyRequest:
    return pb.DecideManyRequest(
        policy=policy,
        items=[pb.DecideItem(item_id=str(number), request=one) for number, one in enumerate(requests)],
    )


async def many(stub: PolicyServiceAsyncStub, *messages: pb.DecideManyRequest) -> list[pb.DecideOutcome]:
    outcomes: list[pb.DecideOutcome] = []
    sequence = 0
    async for response in stub.DecideMany(iter(messages)):
        sequence += 1
        assert response.sequence == sequence
        outcomes += response.outcomes
    return outcomes


@pytest.mark.parametrize(
    ("asked", "decision", "rule_id"),
    [
        (request(path="/a/b"), pb.DECISION_ALLOW, "reads"),
        (request(path="/a/../e"), pb.DECISION_DENY, ""),
        (request("remove", path="/a"), pb.DECISION_ESCALATE, "removes"),
        (request("remove", path="/z"), pb.DECISION_DENY, "structural-z"),
        (request("move"), pb.DECISION_DENY, "structural-unknown-tool"),
        (request("read", server="beta", path="/a"), pb.DECISION_DENY, "structural-unknown-tool"),
    ],
)
async def test_the_rules_decide(
    stub: PolicyServiceAsyncStub,
    stored: CompiledPolicy,
    asked: pb.PolicyRequest,
    decision: int,
    rule_id: str,
) -> None:
    for policy in (POLICY, pb.PolicySource(policy_id=stored.policy_id)):
        result = (await stub.Decide(pb.DecideRequest(policy=policy, request=asked))).result
        assert (result.decision, result.rule_id) == (decision, rule_id)
        assert result.by_invariant == rule_id.startswith("structural-")
        assert result.reasons


async def test_what_is_not_understood_is_denied_and_the_answer_says_why(stub: PolicyServiceAsyncStub) -> None:
    asked = request("read", path="relative")
    result = (await stub.Decide(pb.DecideRequest(policy=POLICY, request=asked))).result
    expected = decided(POLICY.document, server_name="alpha", tool_name="read", arguments={"path": "relative"})
    assert result.decision == pb.DECISION_DENY
    assert [error.code for error in result.errors] == [error.code for error in expected.errors]
    assert result.errors[0].message.startswith("structural-z: ")


@pytest.mark.parametrize(
    ("policy", "asked", "field"),
    [
        (pb.PolicySource(), request(), "policy"),
        (pb.PolicySource(document=b""), request(), "policy.document"),
        (pb.PolicySource(document=b" " * (1024 * 1024 + 1)), request(), "policy.document"),
        (pb.PolicySource(policy_id=""), request(), "policy.policy_id"),
        (POLICY, request(server=""), "request.server_name"),
        (POLICY, request(""), "request.tool_name"),
        (POLICY, pb.PolicyRequest(server_name="a", tool_name="b", arguments=b"["), "request.arguments"),
        (POLICY, pb.PolicyRequest(server_name="a", tool_name="b", arguments=b"[]"), "request.arguments"),
        (
            POLICY,
            pb.PolicyRequest(server_name="a", tool_name="b", arguments=b'{"a":1,"a":2}'),
            "request.arguments",
        ),
    ],
)
async def test_a_request_that_is_wrong_in_itself_is_refused_with_the_field_to_mend(
    stub: PolicyServiceAsyncStub,
    policy: pb.PolicySource,
    asked: pb.PolicyRequest,
    field: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await stub.Decide(pb.DecideRequest(policy=policy, request=asked))
    assert [violation.field for violation in caught.value.violations] == [field]


async def test_numbers_that_the_engine_does_not_take_are_refused_by_their_request(
    stub: PolicyServiceAsyncStub,
) -> None:
    asked = pb.PolicyRequest(server_name="alpha", tool_name="read", arguments=b'{"path":9007199254740993}')
    with pytest.raises(InvalidArgumentError) as caught:
        await stub.Decide(pb.DecideRequest(policy=POLICY, request=asked))
    assert caught.value.code == "REQUEST_INVALID"
    assert caught.value.violations[0].field.startswith("request")


async def test_a_document_with_errors_is_refused_with_its_findings(stub: PolicyServiceAsyncStub) -> None:
    wrong = pb.PolicySource(document=policy_document(policy_version="9"))
    with pytest.raises(InvalidArgumentError) as caught:
        await stub.Decide(pb.DecideRequest(policy=wrong, request=request()))
    assert [violation.field for violation in caught.value.violations] == ["/policy_version"]


async def test_many_are_decided_in_as_many_messages_as_they_came(
    stub: PolicyServiceAsyncStub,
    stored: CompiledPolicy,
) -> None:
    some = [request(path="/a"), request(path="/e"), request("remove", path="/a")]
    by_id = pb.PolicySource(policy_id=stored.policy_id)
    outcomes = await many(stub, items(*some, policy=by_id), items(*some * 100, policy=None))
    assert len(outcomes) == 303
    assert [one.item_id for one in outcomes[:3]] == ["0", "1", "2"]
    assert [one.result.decision for one in outcomes[-3:]] == [
        pb.DECISION_ALLOW,
        pb.DECISION_DENY,
        pb.DECISION_ESCALATE,
    ]


async def test_a_wrong_item_gets_an_error_and_takes_no_other_with_it(stub: PolicyServiceAsyncStub) -> None:
    good = request(path="/a")
    wrong = [
        request(server=""),
        pb.PolicyRequest(server_name="alpha", tool_name="read", arguments=b"{"),
        pb.PolicyRequest(server_name="alpha", tool_name="read", arguments=b'{"path":1e999}'),
        pb.PolicyRequest(server_name="alpha", tool_name="read", arguments=b'{"path":9007199254740993}'),
        pb.PolicyRequest(server_name="alpha", tool_name="read", arguments=b'{"a":' * 300 + b"1" + b"}" * 300),
    ]
    message = items(*(one for pair in zip(wrong, [good] * len(wrong), strict=True) for one in pair))
    message.items.add(item_id="", request=good)
    outcomes = {one.item_id: one for one in await many(stub, message)}
    for number in range(len(wrong)):
        refused, allowed = outcomes[str(2 * number)], outcomes[str(2 * number + 1)]
        assert refused.WhichOneof("outcome") == "error"
        assert refused.error.violations[0].field.startswith("request")
        assert allowed.result.decision == pb.DECISION_ALLOW
    assert outcomes[""].error.violations[0].field == "item_id"


async def test_a_stream_without_a_policy_or_with_too_many_items_is_refused(
    stub: PolicyServiceAsyncStub,
) -> None:
    assert await many(stub) == []
    for message, field in (
        (items(request(), policy=None), "policy"),
        (items(*[request()] * 1001), "items"),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            await many(stub, message)
        assert caught.value.violations[0].field == field


async def test_long_reasons_of_many_decisions_do_not_break_the_limit_of_a_message(
    stub: PolicyServiceAsyncStub,
) -> None:
    rule = {"id": "all", "when": {"logic": {}}, "then": "deny", "reason": "a" * 2000}
    talkative = pb.PolicySource(document=policy_document(rules=[rule] * 1, invariants=[]))
    count = 0
    async for response in stub.DecideMany(
        iter([items(*[request(path="/a")] * 1000, policy=talkative) for _ in range(3)]),
    ):
        assert response.ByteSize() < 2 * 1024 * 1024
        count += len(response.outcomes)
    assert count == 3000


async def test_a_stored_policy_is_told_whole(stub: PolicyServiceAsyncStub, stored: CompiledPolicy) -> None:
    told = (await stub.GetPolicy(pb.GetPolicyRequest(policy_id=stored.policy_id))).policy
    assert (told.policy_id, told.policy_hash, told.input_hash) == (stored.policy_id, stored.policy_hash, "i")
    assert told.document == stored.compiled.document
    mine, theirs = told.scenarios
    assert (mine.scenario_id, mine.source, mine.rule_id) == ("mine", pb.SCENARIO_SOURCE_HANDWRITTEN, "reads")
    assert (mine.request.arguments, list(mine.request.roles)) == (b'{"path":"/a/b","size":1.5}', ["first"])
    assert theirs.scenario_id.startswith("scn_")
    report = told.verification
    assert (report.passed, report.failed, report.mutation.score) == (2, 0, 0.75)
    assert [result.scenario_id for result in report.results] == [mine.scenario_id, theirs.scenario_id]
    assert report.mutation.survivors[0].before == b"{}"
    assert not report.mutation.survivors[0].HasField("after")
    assert [entry.WhichOneof("decision") for entry in told.audit] == [
        "correction",
        "discarded",
        "rule_patch",
        "judge_result",
    ]
    assert told.audit[3].judge_result.overruled
    assert told.audit[0].time.ToNanoseconds() == 1_700_000_000_500_000_000


async def test_policies_are_listed_and_deleted_and_a_deletion_may_be_asked_for_again(
    stub: PolicyServiceAsyncStub,
    stored: CompiledPolicy,
) -> None:
    (listed,) = (await stub.ListPolicies(pb.ListPoliciesRequest())).policies
    assert (listed.policy_id, listed.name, listed.rules, listed.scenarios) == (
        stored.policy_id,
        "Gauge",
        2,
        2,
    )
    deletion = pb.DeletePolicyRequest(request_id=new_id(), policy_id=stored.policy_id)
    for _ in range(2):
        await stub.DeletePolicy(deletion)
    assert not (await stub.ListPolicies(pb.ListPoliciesRequest())).policies
    by_id = pb.PolicySource(policy_id=stored.policy_id)
    for asking in (
        stub.GetPolicy(pb.GetPolicyRequest(policy_id=stored.policy_id)),
        stub.Decide(pb.DecideRequest(policy=by_id, request=request())),
        stub.DeletePolicy(pb.DeletePolicyRequest(request_id=new_id(), policy_id=stored.policy_id)),
    ):
        with pytest.raises(NotFoundError) as caught:
            await asking
        assert caught.value.code == "POLICY_NOT_FOUND"


async def test_a_policy_that_was_used_is_the_one_that_is_asked_for(stub: PolicyServiceAsyncStub) -> None:
    """Compiled policies are cached by their content."""
    for name in ("One", "Other", "One"):
        policy = pb.PolicySource(document=named(name))
        result = (await stub.Decide(pb.DecideRequest(policy=policy, request=request(path="/a")))).result
        assert result.decision == pb.DECISION_ALLOW
    denying = pb.PolicySource(document=policy_document(rules=[]))
    result = (await stub.Decide(pb.DecideRequest(policy=denying, request=request(path="/a")))).result
    assert result.decision == pb.DECISION_DENY
