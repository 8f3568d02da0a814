"""A scripted LLM that writes tests of a small policy: what it says depends on the question alone."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.api.policy.v1 import policy_pb2 as policy
from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.llmsim.script.types import ScriptedCall, ScriptResponse
from support.policy_documents import policy_document, rule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.llmsim.script.types import Pace
    from peripety.llmsim.types import SimRequest


VALUES = ("one", "two", "three", "four", "five", "six")
SUBJECT = pb.Subject(
    policy=policy.PolicySource(
        document=policy_document(
            rules=[
                rule(f"r_{value}", then, logic={"==": [{"var": "arguments.a"}, value]})
                for value, then in zip(VALUES, ("allow", "escalate", "allow") * 2, strict=True)
            ],
        ),
    ),
)


class Script:
    """Answers questions of runs of tests.

    Args:
        pace: how answers arrive.
    """

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace

    def __call__(self, request: SimRequest) -> ScriptResponse:
        return replace(self._answer(json.loads(request.messages[0].text)), pace=self._pace)

    def _answer(self, asked: dict[str, Any]) -> ScriptResponse:
        if asked["question"] == "tests":
            calls = [ScriptedCall("generate_test", test) for test in _tests(asked)]
            return ScriptResponse("Here they are.", tool_calls=tuple(calls))
        if asked["question"] == "reflection":
            said = {"text": "Some may be missing.", "nothing_missing": False, "recommendations": ["the next"]}
        else:
            said = {"text": "It will do.", "score": 7, "gaps": ["the rest"], "recommendations": ["the rest"]}
        return ScriptResponse(json.dumps(said))


def _tests(asked: dict[str, Any]) -> list[dict[str, Any]]:
    category, number = asked.get("category") or "all", asked["round"]
    first = sum(map(ord, category)) + number
    written = []
    for step in range(3):
        value = VALUES[(first + step) % len(VALUES)]
        expected = "allow" if step else "escalate"
        body = {
            "server_name": "s",
            "tool_name": "t",
            "arguments": {"a": value},
            "roles": [f"{category}{number}"],
            "expected": expected,
        }
        test = {"id": f"t{step}", "input": f"{category} {number}: {value}", "expected_output": expected}
        more = {"reasoning": "because", "confidence": 0.9, "body": json.dumps(body)}
        named = {} if asked.get("category") else {"category": "existence"}
        written.append({**test, **more, **named})
    return written


def suite_of(events: Sequence[pb.TestGenEvent]) -> list[tuple[str, ...]]:
    """The tests that a run has kept, by what they are and what became of them, whatever they are called."""
    tests: dict[str, pb.GeneratedTest] = {}
    verdicts: dict[str, pb.TestVerdict] = {}
    for event in events:
        match event.WhichOneof("event"):
            case "test":
                tests[event.test.test_id] = event.test
            case "duplicate":
                tests.pop(event.duplicate.test.test_id, None)
            case "test_ran":
                verdicts[event.test_ran.test_id] = event.test_ran.verdict
    return [
        (test.category, str(test.round), test.input, str(test.policy), str(verdicts.get(name)))
        for name, test in tests.items()
    ]
