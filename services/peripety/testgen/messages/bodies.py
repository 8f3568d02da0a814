"""Test bodies from and to protobuf. The members of a body determine the kind of its subject."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.policy.v1 import policy_pb2 as policy
from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.errors import PeripetyError
from peripety.policies.messages import parts
from peripety.policies.messages.asked import tool_request
from peripety.policies.model import Expectation
from peripety.requests import refuse, require
from peripety.testgen.subjects.policy import scenario_of
from peripety.testgen.subjects.scenario.body import read_body

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.testgen.model import TestCase
    from peripety.testgen.subjects.scenario.body import Step

__all__ = ["body_from_proto", "body_to_proto"]

_EXPECTATIONS = {policy.Expectation.Value(f"EXPECTATION_{one.name}"): one for one in Expectation}


def body_to_proto(test: TestCase, written: pb.GeneratedTest) -> None:
    """Write the body of a test to its message; an invalid body is left out."""
    body = test.body or {}
    try:
        if "steps" in body:
            written.scenario.CopyFrom(_scenario_to_proto(body))
        elif "tool_name" in body:
            written.policy.CopyFrom(_policy_to_proto(test, body))
        elif "arguments" in body:
            written.command.CopyFrom(_command_to_proto(body))
    except (PeripetyError, KeyError, TypeError, ValueError, AttributeError):
        # A model may write anything. The verdict of the test describes the defect.
        written.ClearField("body")


def body_from_proto(test: pb.GeneratedTest, field: str) -> Mapping[str, Any] | None:
    """Parse the body of a test; None for text only.

    Args:
        test: the test.
        field: its path in the request.

    Raises:
        InvalidArgumentError: a field is invalid.
    """
    match test.WhichOneof("body"):
        case "scenario":
            return _scenario_from_proto(test.scenario, f"{field}.scenario")
        case "policy":
            return _policy_from_proto(test.policy, f"{field}.policy")
        case "command":
            return _command_from_proto(test.command, f"{field}.command")
        case _:
            return None


def _scenario_to_proto(body: Mapping[str, Any]) -> pb.ScenarioTest:
    read = read_body(body)
    return pb.ScenarioTest(seed=read.seed, steps=map(_step_to_proto, read.steps))


def _step_to_proto(step: Step) -> pb.ScenarioStep:
    actions = (
        engine.ActionCall(
            action_id=action.action_id,
            params={name: _param_to_proto(value) for name, value in action.params.items()},
        )
        for action in step.actions
    )
    expect = b"" if step.expect is None else json.dumps(step.expect, separators=(",", ":")).encode()
    return pb.ScenarioStep(actions=actions, expect=expect, expect_accepted=step.accepted)


def _param_to_proto(value: Any) -> engine.ParamValue:
    if isinstance(value, bool):
        return engine.ParamValue(flag=value)
    if isinstance(value, str):
        return engine.ParamValue(text=value)
    return engine.ParamValue(number=value)


def _scenario_from_proto(test: pb.ScenarioTest, field: str) -> Mapping[str, Any]:
    seed = test.seed if test.HasField("seed") else None
    require(seed is None or 0 <= seed <= sim.MAX_SEED, f"{field}.seed", f"must be from 0 to {sim.MAX_SEED}")
    return {
        "seed": seed,
        "steps": [_step_from_proto(step, f"{field}.steps[{at}]") for at, step in enumerate(test.steps)],
    }


def _step_from_proto(step: pb.ScenarioStep, field: str) -> Mapping[str, Any]:
    actions = [
        {
            "action_id": action.action_id,
            "params": {
                name: _param_from_proto(value, f"{field}.actions[{at}].params[{name[:64]}]")
                for name, value in sorted(action.params.items())
            },
        }
        for at, action in enumerate(step.actions)
    ]
    accepted = step.expect_accepted if step.HasField("expect_accepted") else None
    try:
        expect = sim.parse(step.expect) if step.expect else None
    except PeripetyError as error:
        raise refuse(f"{field}.expect", f"is not JSONLogic as JSON: {error.message}") from None
    return {"actions": actions, "accepted": accepted, "expect": expect}


def _param_from_proto(value: engine.ParamValue, field: str) -> Any:
    kind = value.WhichOneof("kind")
    require(kind, field, "is empty; set number, text or flag")
    return getattr(value, str(kind))


def _policy_to_proto(test: TestCase, body: Mapping[str, Any]) -> policy.PolicyScenario:
    scenario = scenario_of(body)
    return policy.PolicyScenario(
        scenario_id=test.test_id,
        description=test.input,
        request=parts.tool_request(scenario.request),
        expected=parts.expectation(scenario.expected_decision),
        reasoning=test.reasoning,
    )


def _policy_from_proto(scenario: policy.PolicyScenario, field: str) -> Mapping[str, Any]:
    request = tool_request(scenario.request, f"{field}.request")
    expected = _EXPECTATIONS.get(scenario.expected)
    require(expected, f"{field}.expected", "is required; set the expected decision")
    return {
        "server_name": request.server_name,
        "tool_name": request.tool_name,
        "arguments": request.arguments,
        "roles": [*request.roles],
        "expected": _EXPECTATIONS[scenario.expected].value,
    }


def _command_to_proto(body: Mapping[str, Any]) -> pb.CommandTest:
    stdin = body.get("stdin") or ""
    return pb.CommandTest(
        arguments=body["arguments"],
        stdin=stdin.encode(errors="surrogateescape"),
        expect_exit_code=body.get("exit_code"),
    )


def _command_from_proto(test: pb.CommandTest, field: str) -> Mapping[str, Any]:
    try:
        stdin = test.stdin.decode()
    except UnicodeDecodeError:
        raise refuse(f"{field}.stdin", "is not UTF-8") from None
    return {
        "arguments": [*test.arguments],
        "stdin": stdin,
        "exit_code": test.expect_exit_code if test.HasField("expect_exit_code") else None,
    }
