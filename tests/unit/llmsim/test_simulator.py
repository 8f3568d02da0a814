"""Simulator handle: requests in process, state, its serialized forms, and errors."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from peripety.engine.patterns.syntax import Pattern, TextKind, TextPattern
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.llmsim.capture import AnsweredOutcome, UnmatchedOutcome
from peripety.llmsim.in_process import FinishedEvent, InterruptedAnswerError, TextDeltaEvent
from peripety.llmsim.script.types import (
    ClockMode,
    CountScope,
    Fault,
    Script,
    ScriptedCall,
    ScriptedUsage,
    ScriptResponse,
    ScriptRule,
    ScriptTurn,
)
from peripety.llmsim.simulator import Simulator
from peripety.llmsim.types import Api, ApiError, ApiErrorKind, SimMessage, SimRequest, SimRole, SimStopReason

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.llmsim.script_engine import Exchange


ANY = Pattern()
DENIED = Fault("auth_error", {"message": "not this key"})


def contains(text: str) -> Pattern:
    return Pattern(TextPattern(TextKind.CONTAINS, text))


def rule(text: str, answer: str, *turns: ScriptTurn) -> ScriptRule:
    return ScriptRule(contains(text), ScriptResponse(answer), turns=turns)


STEPS = rule("enter", "one", ScriptTurn(ANY, ScriptResponse("two")), ScriptTurn(ANY, ScriptResponse("three")))
SCENARIO = Script((STEPS, rule("other", "else")), default_response=ScriptResponse("default"))


def wired(*messages: SimMessage, name: str | None = None, key: str = "k") -> SimRequest:
    return SimRequest(Api.OPENAI_CHAT, "m", messages, key=key, conversation=name)


def user(text: str) -> SimMessage:
    return SimMessage(SimRole.USER, text)


def said(exchange: Exchange) -> str | None:
    return None if exchange.reply is None else "".join(part.text for part in exchange.reply.parts)  # type: ignore[union-attr]


# ---- answers


def test_a_call_is_answered_and_says_by_what() -> None:
    simulator = Simulator(SCENARIO)
    answers = [simulator.execute(prompt) for prompt in ("enter", "x", "y", "z", "other")]
    assert [(each.text, each.label) for each in answers] == [
        ("one", "response[0]"),
        ("two", "response[0].turn[0]"),
        ("three", "response[0].turn[1]"),
        ("default", "default"),
        ("else", "response[1]"),
    ]


def test_what_nothing_matches_is_answered_with_nothing() -> None:
    answer = Simulator(Script((STEPS,))).execute("unknown")
    assert (answer.text, answer.label, answer.tool_calls) == ("", None, ())


def test_over_a_wire_what_nothing_matches_is_an_error() -> None:
    exchange = Simulator(Script((STEPS,))).begin(wired(user("unknown")))
    assert exchange.error is not None
    assert exchange.error.kind is ApiErrorKind.INVALID_REQUEST
    assert "responses[0]: the prompt does not contain 'enter'; 'enter' would match" in exchange.error.message
    assert exchange.reply is None


def test_what_nothing_matches_is_captured_with_what_came_closest() -> None:
    simulator = Simulator(Script((STEPS,)))
    simulator.execute("unknown")
    simulator.begin(wired(user("unknown")))
    near = ("responses[0]: the prompt does not contain 'enter'; 'enter' would match",)
    assert [call.outcome for call in simulator.captured] == [UnmatchedOutcome(near)] * 2


def test_one_call_is_one_step_even_where_the_next_turn_would_take_anything() -> None:
    simulator = Simulator(SCENARIO)
    simulator.execute("enter")
    assert simulator.has_active_sequence()
    simulator.execute("")
    assert simulator.has_active_sequence()
    simulator.execute("")
    assert not simulator.has_active_sequence()


def test_tool_calls_reasoning_and_claimed_usage_arrive_as_scripted() -> None:
    response = ScriptResponse(
        text="prose",
        reasoning="thought",
        tool_calls=(ScriptedCall("f", {"x": [1, "ü"]}), ScriptedCall("g")),
        usage=ScriptedUsage(input_tokens=100, output_tokens=7, cache_read_tokens=60),
        delay_ms=250,
    )
    answer = Simulator(Script((ScriptRule(ANY, response),))).execute("p")
    assert (answer.text, answer.reasoning, answer.delay_ms, answer.stop) == (
        "prose",
        "thought",
        250,
        SimStopReason.TOOL_USE,
    )
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [("f", {"x": [1, "ü"]}), ("g", {})]
    assert len({call.id for call in answer.tool_calls}) == 2
    assert answer.usage is not None
    assert (answer.usage.input, answer.usage.read, answer.usage.fresh, answer.usage.output) == (
        100,
        60,
        40,
        7,
    )


@pytest.mark.parametrize(
    ("claim", "output", "reasoning"),
    [
        (ScriptedUsage(reasoning_tokens=50), 50, 50),
        (ScriptedUsage(output_tokens=5, reasoning_tokens=50), 5, 5),
        (ScriptedUsage(output_tokens=60, reasoning_tokens=50), 60, 50),
    ],
)
def test_claimed_reasoning_is_part_of_the_output(claim: ScriptedUsage, output: int, reasoning: int) -> None:
    usage = Simulator(Script((ScriptRule(ANY, ScriptResponse("prose", usage=claim)),))).execute("p").usage
    assert usage is not None
    assert (usage.output, usage.reasoning) == (output, reasoning)


def test_an_answer_ends_where_the_caller_says() -> None:
    simulator = Simulator(Script((ScriptRule(ANY, ScriptResponse("0123456789abcdef")),)))
    cut = simulator.execute("p", max_tokens=2)
    assert (cut.text, cut.stop) == ("01234567", SimStopReason.LENGTH)
    exchange = simulator.begin(replace(wired(user("p")), stop=("zz", "abc", "9")))
    assert exchange.reply is not None
    assert said(exchange) == "012345678"
    assert (exchange.reply.stop, exchange.reply.stop_sequence) == (SimStopReason.STOP_SEQUENCE, "9")


@pytest.mark.parametrize(("told", "text"), [(2, "0123456789abcdef"), (3, "01234567")])
def test_an_answer_that_claims_its_tokens_is_cut_by_its_own_count(told: int, text: str) -> None:
    claim = ScriptedUsage(output_tokens=told)
    simulator = Simulator(Script((ScriptRule(ANY, ScriptResponse("0123456789abcdef", usage=claim)),)))
    assert simulator.execute("p", max_tokens=2).text == text


async def test_a_streamed_answer_is_the_same_in_pieces() -> None:
    simulator = Simulator(Script((ScriptRule(ANY, ScriptResponse("12345678")),)))
    events = [event async for event in simulator.stream("p")]
    assert events[:-1] == [TextDeltaEvent("1234"), TextDeltaEvent("5678")]
    assert isinstance(events[-1], FinishedEvent)
    assert events[-1].stop is SimStopReason.END


def test_rules_can_look_at_tool_results_and_at_the_place_in_the_conversation() -> None:
    second = ScriptRule(replace(ANY, message_index=(1, 1)), ScriptResponse("second"))
    result = ScriptRule(
        replace(ANY, tool_result=TextPattern(TextKind.CONTAINS, "42")),
        ScriptResponse("result"),
    )
    simulator = Simulator(Script((second, result), default_response=ScriptResponse("other")))
    assert [simulator.execute("p").text for _ in range(3)] == ["other", "second", "other"]
    assert simulator.execute("", tool_results=["it is 42"]).text == "result"


def test_every_call_is_captured_with_what_was_asked_and_answered() -> None:
    simulator = Simulator(SCENARIO)
    simulator.execute("enter")
    (call,) = simulator.captured
    assert (call.request.prompt, call.request.model, call.label) == ("enter", "claude-test", "response[0]")
    assert isinstance(call.outcome, AnsweredOutcome)
    assert (call.outcome.text, call.outcome.delay_ms) == ("one", 0)


# ---- state


def test_conversations_are_apart_and_so_are_their_counts() -> None:
    once = replace(STEPS, max_matches=1)
    simulator = Simulator(Script((once,), default_response=ScriptResponse("default")))
    assert simulator.execute("enter", conversation="a").text == "one"
    assert simulator.execute("enter", conversation="b").text == "one"
    assert simulator.execute("x", conversation="a").text == "two"
    simulator.reset_turns()
    assert simulator.execute("enter", conversation="a").text == "default"
    assert simulator.execute("enter", conversation="c").text == "one"


def test_counts_may_be_shared() -> None:
    once = replace(STEPS, max_matches=1)
    shared = Script((once,), default_response=ScriptResponse("default"), counts=CountScope.SHARED)
    simulator = Simulator(shared)
    answers = [simulator.execute("enter", conversation=name).text for name in "ab"]
    assert answers == ["one", "default"]


def test_a_history_that_is_repeated_goes_on_where_it_was() -> None:
    simulator = Simulator(SCENARIO)
    history = [user("enter"), SimMessage(SimRole.ASSISTANT, "one"), user("x")]
    assert said(simulator.begin(wired(user("enter")))) == "one"
    assert said(simulator.begin(wired(*history))) == "two"
    assert said(simulator.begin(wired(*history))) == "two"  # repeated, for instance after a cut
    assert said(simulator.begin(wired(*history, SimMessage(SimRole.ASSISTANT, "two"), user("y")))) == "three"


def test_counts_can_be_reset_and_sequences_too() -> None:
    simulator = Simulator(
        Script((replace(STEPS, max_matches=1),), default_response=ScriptResponse("default")),
    )
    simulator.execute("enter")
    simulator.reset_turns()
    assert not simulator.has_active_sequence()
    assert simulator.execute("enter").text == "default"
    simulator.reset_counters()
    assert simulator.execute("enter").text == "one"


def test_a_reset_forgets_everything() -> None:
    simulator = Simulator(SCENARIO)
    before = [simulator.execute(prompt) for prompt in ("enter", "x")]
    simulator.advance(60)
    simulator.reset()
    assert [simulator.execute(prompt) for prompt in ("enter", "x")] == before
    assert len(simulator.captured) == 2


def test_a_fork_goes_its_own_way() -> None:
    simulator = Simulator(SCENARIO)
    simulator.execute("enter")
    fork = simulator.fork()
    assert fork.execute("x").text == "two"
    assert fork.execute("y").text == "three"
    assert simulator.execute("x").text == "two"


def test_a_reload_keeps_sequences_and_counts() -> None:
    simulator = Simulator(Script((replace(STEPS, max_matches=1),)))
    simulator.execute("enter")
    changed = replace(STEPS, max_matches=1, turns=(ScriptTurn(ANY, ScriptResponse("new")),))
    simulator.reload(Script((rule("before", "b"), changed), default_response=ScriptResponse("default")))
    assert [simulator.execute(prompt).text for prompt in ("x", "enter", "before")] == ["new", "default", "b"]


def test_a_sequence_that_a_reload_leaves_no_place_for_ends() -> None:
    simulator = Simulator(SCENARIO)
    simulator.execute("enter")
    simulator.execute("x")
    simulator.reload(
        Script((replace(STEPS, turns=STEPS.turns[:1]),), default_response=ScriptResponse("default")),
    )
    assert simulator.execute("y").text == "default"


def test_a_scenario_that_cannot_be_compiled_leaves_the_old_one() -> None:
    simulator = Simulator(SCENARIO)
    simulator.execute("enter")
    with pytest.raises(InvalidArgumentError):
        simulator.reload(
            Script((ScriptRule(Pattern(TextPattern(TextKind.REGEX, "(")), ScriptResponse("x")),)),
        )
    assert simulator.execute("x").text == "two"


def test_state_is_kept_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "state"
    texts = []
    for prompt in ("enter", "x", "y", "z"):
        simulator = Simulator(SCENARIO, state=path)
        texts.append(simulator.execute(prompt).text)
        simulator.close()
    assert texts == ["one", "two", "three", "default"]


def test_a_file_of_something_else_is_not_touched(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    with sqlite3.connect(foreign) as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    text = tmp_path / "text"
    text.write_text("not a database, but some text", encoding="utf-8")
    for path in (foreign, text, tmp_path / "missing" / "state"):
        with pytest.raises(FailedPreconditionError, match=path.name):
            Simulator(SCENARIO, state=path)
    assert text.read_text(encoding="utf-8") == "not a database, but some text"


def test_a_file_that_another_simulator_uses_is_said_to_be_in_use(tmp_path: Path) -> None:
    path = tmp_path / "state"
    simulator = Simulator(SCENARIO, state=path)
    with pytest.raises(FailedPreconditionError, match="is used by another process"):
        Simulator(SCENARIO, state=path)
    simulator.close()
    Simulator(SCENARIO, state=path).close()


def test_a_virtual_clock_stands_still_until_it_is_moved() -> None:
    simulator = Simulator(SCENARIO)
    start = simulator.now()
    assert simulator.now() == start == SCENARIO.start.timestamp()
    assert simulator.advance(90.5) == start + 90.5
    with pytest.raises(InvalidArgumentError, match="forwards"):
        simulator.advance(-1)
    for seconds in (2.5e11, 1e308):
        with pytest.raises(InvalidArgumentError, match="8999"):
            simulator.advance(seconds)
    assert simulator.now() == start + 90.5
    with pytest.raises(FailedPreconditionError, match="virtual"):
        Simulator(replace(SCENARIO, clock=ClockMode.REAL)).advance(1)


# ---- failures


def test_a_failure_is_raised_and_captured() -> None:
    simulator = Simulator(Script((ScriptRule(ANY, failure=DENIED),)))
    with pytest.raises(ApiError, match="not this key") as raised:
        simulator.execute("p")
    assert raised.value.kind is ApiErrorKind.AUTHENTICATION
    assert [call.request.prompt for call in simulator.captured.find_failures("auth_error")] == ["p"]


def test_a_failing_turn_is_used_up() -> None:
    simulator = Simulator(
        Script(
            (rule("enter", "one", ScriptTurn(ANY, failure=DENIED), ScriptTurn(ANY, ScriptResponse("two"))),),
        ),
    )
    simulator.execute("enter")
    with pytest.raises(ApiError):
        simulator.execute("x")
    assert simulator.execute("x").text == "two"


@pytest.mark.parametrize("failing", [DENIED, Fault("stream_cut", {"after_chunks": 1})])
def test_a_failing_turn_is_used_up_for_a_caller_who_repeats_the_history(failing: Fault) -> None:
    turns = (ScriptTurn(ANY, ScriptResponse("lost"), failing), ScriptTurn(ANY, ScriptResponse("two")))
    simulator = Simulator(Script((rule("enter", "one", *turns),)))
    history = [user("enter"), SimMessage(SimRole.ASSISTANT, "one"), user("x")]
    simulator.begin(wired(history[0]))
    simulator.begin(wired(*history))
    assert said(simulator.begin(wired(*history))) == "two"


def test_a_failure_of_some_calls_leaves_the_response_to_the_others() -> None:
    twice = replace(DENIED, times=2)
    simulator = Simulator(Script((ScriptRule(ANY, ScriptResponse("fine"), twice),)))
    outcomes = [simulator.begin(wired(user("p"))).error is None for _ in range(4)]
    assert outcomes == [False, False, True, True]


def test_chance_depends_on_the_seed_alone() -> None:
    scenario = Script((ScriptRule(ANY, ScriptResponse("fine"), replace(DENIED, probability=0.5)),))

    def outcomes(seed: int) -> list[bool]:
        simulator = Simulator(scenario, seed=seed)
        return [simulator.begin(wired(user("p"))).error is None for _ in range(50)]

    assert outcomes(1) == outcomes(1)
    assert outcomes(1) != outcomes(2)
    assert 10 < sum(outcomes(1)) < 40


def test_what_fails_before_the_model_leaves_the_sequence_where_it_is() -> None:
    simulator = Simulator(SCENARIO)
    simulator.execute("enter")
    simulator.inject(replace(DENIED, times=1))
    with pytest.raises(ApiError):
        simulator.execute("x")
    assert simulator.execute("x").text == "two"


def test_an_injected_failure_counts_everybodys_requests_from_now_on(tmp_path: Path) -> None:
    simulator = Simulator(SCENARIO, state=tmp_path / "state")

    def fails(name: str) -> bool:
        return simulator.begin(wired(user("other"), name=name)).error is not None

    simulator.inject(replace(DENIED, times=2))
    assert [fails(name) for name in "abc"] == [True, True, False]
    simulator.close()
    simulator = Simulator(SCENARIO, state=tmp_path / "state")
    simulator.inject(replace(DENIED, times=1))
    fork = simulator.fork()
    assert [fails(name) for name in "ab"] == [True, False]
    simulator = fork
    assert [fails(name) for name in "ab"] == [True, False]


def test_a_cut_answer_is_an_interruption_in_process() -> None:
    cut = Fault("stream_cut", {"after_chunks": 1})
    simulator = Simulator(Script((ScriptRule(ANY, ScriptResponse("12345678"), cut),)))
    with pytest.raises(InterruptedAnswerError):
        simulator.execute("p")


def test_only_the_scenarios_keys_are_let_in() -> None:
    simulator = Simulator(replace(SCENARIO, keys=("good",)))
    refused = simulator.begin(wired(user("enter"), key="bad"))
    assert refused.error is not None
    assert refused.error.kind is ApiErrorKind.AUTHENTICATION
    assert said(simulator.begin(wired(user("enter"), key="good"))) == "one"
