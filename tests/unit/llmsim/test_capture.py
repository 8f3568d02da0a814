from __future__ import annotations

import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine.patterns.syntax import MatchSubject, Pattern
from peripety.errors import FailedPreconditionError
from peripety.llmsim.capture import CapturedCall, CaptureLog, RequestSummary, UnmatchedOutcome, make_outcome
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.script.types import Fault, ScriptRule, ScriptTurn
from peripety.llmsim.types import (
    Api,
    ApiError,
    ApiErrorKind,
    BilledUsage,
    ReasoningPart,
    SimMessage,
    SimReply,
    SimRequest,
    SimRole,
    SimStopReason,
    SimTool,
    TextPart,
    ToolUsePart,
)

if TYPE_CHECKING:
    from pathlib import Path


KEY = "sk-canary-0123456789"
RULES = [ScriptRule(Pattern(), turns=(ScriptTurn(Pattern()), ScriptTurn(Pattern()))), ScriptRule(Pattern())]


def log(**given: Any) -> CaptureLog:
    return CaptureLog(lambda: RULES, **given)


def ask(
    captured: CaptureLog,
    prompt: str,
    label: str | None = "response[0]",
    *,
    text: str | None = "fine",
    failure: str | None = None,
    error: ApiError | None = None,
) -> CapturedCall:
    request = SimRequest(
        Api.ANTHROPIC,
        "m",
        (SimMessage(SimRole.USER, prompt),),
        "be brief",
        (SimTool("weather"),),
        key=KEY,
        conversation="c",
    )
    parts = (
        (ReasoningPart(("hm",), ""), TextPart((text,)), ToolUsePart("1", "weather", ('{"a":', "1}")))
        if text
        else ()
    )
    reply = (
        None
        if text is None
        else SimReply("id", 0, "m", parts, SimStopReason.END, BilledUsage(fresh=3, output=4))
    )
    spoilt = None if failure is None else Fault(failure, KINDS[failure].default_settings)
    asked = RequestSummary.from_request(request, MatchSubject(prompt, "m", None, 2))
    answered = reply or error or spoilt
    came = make_outcome(reply, error, spoilt, 5) if answered else UnmatchedOutcome(("responses[0]: too far",))
    return captured.record(asked, 1_767_225_600, label, came)


@pytest.fixture
def calls() -> CaptureLog:
    captured = log()
    ask(captured, "log in please")
    ask(captured, "my password", "response[0].turn[0]", text="welcome")
    ask(captured, "and now", failure="stream_cut")
    ask(captured, "too fast", None, text=None, error=ApiError(ApiErrorKind.RATE_LIMIT, "slow down"))
    ask(captured, "anyone there", None, text=None, failure="hang")
    ask(captured, "what", None, text=None)
    return captured


def test_a_call_has_a_number_a_time_what_was_asked_and_what_came_of_it() -> None:
    assert ask(log(), "hello").to_json() == {
        "number": 1,
        "time": "2026-01-01T00:00:00Z",
        "request": {
            "api": "anthropic",
            "model": "m",
            "conversation": "c",
            "prompt": "hello",
            "tool_result": None,
            "message_index": 2,
            "messages": 1,
            "system": "be brief",
            "tools": ("weather",),
            "stream": False,
            "key": "782a873f91fd",
        },
        "label": "response[0]",
        "outcome": {
            "type": "response",
            "text": "fine",
            "reasoning": "hm",
            "refusal": None,
            "tool_calls": [{"tool": "weather", "input": {"a": 1}}],
            "stop": "end",
            "usage": {"fresh": 3, "read": 0, "written": {}, "output": 4, "reasoning": 0},
            "delay_ms": 5,
            "failure": None,
        },
    }


def test_every_outcome_has_its_own_form(calls: CaptureLog) -> None:
    outcomes = [call.to_json()["outcome"] for call in calls]
    assert [each["type"] for each in outcomes] == ["response"] * 3 + ["failure"] * 2 + ["no_match"]
    assert outcomes[2]["failure"] == "stream_cut"
    assert outcomes[3] == {"type": "failure", "failure": "rate_limit", "message": "slow down"}
    assert outcomes[4]["failure"] == "hang"


def test_calls_are_found_by_prompt_outcome_and_predicate(calls: CaptureLog) -> None:
    assert [call.number for call in calls.find_by_prompt("a")] == [1, 2, 3, 4, 5, 6]
    assert [call.number for call in calls.find_by_prompt(re.compile("^and|^any"))] == [3, 5]
    assert [call.number for call in calls.find_responses()] == [1, 2, 3]
    assert [call.number for call in calls.find_failures()] == [3, 4, 5]
    assert [call.number for call in calls.find_failures("hang")] == [5]
    assert calls.count(lambda call: call.label is None) == 3
    assert [call.number for call in calls.last(2)] == [5, 6]
    assert calls.last(0) == []


def test_memory_is_bounded_and_numbers_go_on() -> None:
    captured = log(limit=3)
    for number in range(10):
        ask(captured, str(number))
    assert [call.number for call in captured] == [8, 9, 10]
    captured.clear()
    assert len(captured) == 0
    assert ask(captured, "next").number == 11


def test_what_holds_raises_nothing(calls: CaptureLog) -> None:
    calls.assert_received("password")
    calls.assert_received(re.compile(r"log\s+in"))
    calls.assert_not_received("logout")
    calls.assert_count(6)
    calls.assert_count(2, re.compile("^an"))
    calls.assert_order("log in", re.compile("pass"), "what")
    calls.assert_last_contains("fine")


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        (
            "assert_received",
            ["log in plaese"],
            "no prompt has 'log in plaese'; of 6 received, the nearest is #1 'log in please'",
        ),
        (
            "assert_received",
            [re.compile("^pass")],
            "no prompt has /^pass/; of 6 received, the nearest is #2 'my password'",
        ),
        ("assert_not_received", ["password"], "#2 'my password' has 'password', and no prompt should"),
        ("assert_count", [5], "6 calls, not 5:\n"),
        (
            "assert_count",
            [1, re.compile("^an")],
            "2 prompts with /^an/, not 1:\n  #3 'and now'\n  #5 'anyone there'",
        ),
        (
            "assert_order",
            ["what", "log in"],
            "after #6 'what', no prompt has 'log in'; only #1 'log in please' does",
        ),
        (
            "assert_order",
            ["login"],
            "from the beginning, no prompt has 'login'; of 6 received, the nearest is #1",
        ),
        ("assert_last_contains", ["bye"], "'fine', the latest answer, to #3 'and now', lacks 'bye'"),
        ("assert_all_used", [], "never used: response[1], response[0].turn[1]"),
    ],
)
def test_what_does_not_hold_says_what_there_is(
    calls: CaptureLog,
    method: str,
    given: list[Any],
    message: str,
) -> None:
    with pytest.raises(AssertionError) as raised:
        getattr(calls, method)(*given)
    assert str(raised.value).startswith(message)


def test_nothing_received_says_so() -> None:
    with pytest.raises(AssertionError, match="nothing was received"):
        log().assert_received("hello")
    with pytest.raises(AssertionError, match="nothing was answered"):
        log().assert_last_contains("hello")


def test_unused_rules_and_turns_are_named(calls: CaptureLog) -> None:
    assert calls.unused_rules() == ["response[1]"]
    assert calls.unused_turns() == ["response[0].turn[1]"]
    ask(calls, "x", "response[1]")
    ask(calls, "x", "response[0].turn[1]")
    calls.assert_all_used()


def test_each_call_is_a_line_of_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    captured = log(path=path)
    for prompt in ("grüß dich", "two\nlines", "half a pair \ud83d"):
        call = ask(captured, prompt)
        line = path.read_text(encoding="utf-8").splitlines()[-1]
        assert json.loads(line) == json.loads(json.dumps(call.to_json()))
    captured.close()


def test_a_restart_appends_and_numbers_go_on(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    first = log(path=path)
    ask(first, "one")
    first.close()
    with path.open("ab") as file:
        file.write(b'{"cut off')
    second = log(path=path)
    ask(second, "two")
    second.close()
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[1] == '{"cut off'
    assert [json.loads(line)["number"] for line in (lines[0], lines[2])] == [1, 3]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "calls.jsonl"
    with pytest.raises(FailedPreconditionError, match=r"missing/calls.jsonl cannot be written: No such file"):
        CaptureLog(tuple, path)


def test_no_credential_is_captured(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    captured = log(path=path)
    call = ask(captured, "hello")
    captured.close()
    assert KEY not in repr(call) + path.read_text(encoding="utf-8")


def test_threads_share_a_log() -> None:
    captured = log()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: ask(captured, str(number)), range(400)))
    assert sorted(call.number for call in captured) == list(range(1, 401))
