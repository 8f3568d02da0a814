"""Schema of a script file: every table, its fields, and the constraints between them."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety.sim.patterns import Pattern, PatternError, TextKind, TextPattern
from peripety.sim.patterns.syntax import tree
from peripety.simulator.failures.kinds import KINDS
from peripety.simulator.model import Stop
from peripety.simulator.scenario.model import (
    ClockMode,
    CountScope,
    Failure,
    Limit,
    Pace,
    Response,
    Rule,
    Scenario,
    ScriptedCall,
    ScriptedUsage,
    Turn,
)
from peripety.simulator.scenario.readers import (
    Table,
    Tagged,
    array,
    boolean,
    choice,
    integer,
    json_value,
    number,
    shorthand,
    shown,
    string,
    text,
)
from peripety.simulator.wire.json_text import compact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from peripety.simulator.failures.kinds import Kind, Setting
    from peripety.simulator.scenario.problems import FieldPath
    from peripety.simulator.scenario.readers import Fault, Reader, Reading

__all__ = ["TEXT_FIELDS", "UNBOUNDED", "scenario"]

TEXT_FIELDS = {
    TextKind.CONTAINS: "text",
    TextKind.EXACT: "text",
    TextKind.REGEX: "pattern",
    TextKind.GLOB: "pattern",
}
"""The field with the text to match, by pattern type."""

UNBOUNDED = 2**31 - 1
"""The largest message index."""

_MOST = 2**32 - 1
_MOST_SEED = 2**53 - 1
_DAY_MS = 24 * 60 * 60 * 1000
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(3000, 1, 1, tzinfo=UTC)


# ---- patterns


def _valid(kind: TextKind) -> Reader:
    """Return a reader of regular expressions or globs."""

    def read(value: Any, path: FieldPath, reading: Reading) -> str | None:
        found = string(value, path, reading)
        if found is None:
            return None
        try:
            tree(TextPattern(kind, found))
        except PatternError as error:
            reading.wrong(path, f"not a valid {kind}: {error.message}")
            return None
        return found

    return read


def _text_fields(kind: TextKind) -> dict[str, Reader]:
    if kind not in TEXT_FIELDS:
        return {}
    field = TEXT_FIELDS[kind]
    return {field: _valid(kind) if field == "pattern" else string, "ignore_case": boolean}


def _patterns(make: Callable[..., Any], others: Mapping[str, Reader]) -> Tagged:
    return Tagged(
        "a pattern",
        {
            kind.value: Table(
                f"the pattern type `{kind}`",
                partial(make, kind),
                {**_text_fields(kind), **others},
                required=tuple(_text_fields(kind))[:1],
                meant={"text": "pattern", "pattern": "text"},
            )
            for kind in TextKind
        },
    )


def _text_pattern(
    kind: TextKind, *, text: str = "", pattern: str = "", ignore_case: bool = False
) -> TextPattern:
    return TextPattern(kind, text or pattern, ignore_case)


def _pattern(
    kind: TextKind,
    *,
    model: TextPattern | None = None,
    tool_result: TextPattern | None = None,
    message_index: tuple[int, int] | None = None,
    **written: Any,
) -> Pattern:
    return Pattern(_text_pattern(kind, **written), model, tool_result, message_index)


def _model(value: Any, path: FieldPath, reading: Reading) -> TextPattern | None:
    if isinstance(value, str):
        glob = _valid(TextKind.GLOB)(value, path, reading)
        return None if glob is None else TextPattern(TextKind.GLOB, glob)
    found: TextPattern | None = _TEXT_PATTERN(value, path, reading)
    return found


def _message_index(value: Any, path: FieldPath, reading: Reading) -> tuple[int, int] | None:
    if isinstance(value, dict):
        bounds: tuple[int, int] | None = _RANGE(value, path, reading)
        return bounds
    index = _INDEX(value, path, reading)
    return None if index is None else (index, index)


def _ordered(given: Mapping[str, Any]) -> Iterator[Fault]:
    low, high = given.get("from"), given.get("to")
    if low is not None and high is not None and low > high:
        yield ("from",), f"{low} is after `to`, which is {high}"


_INDEX = integer(0, UNBOUNDED)
_RANGE = Table(
    "a range of message indices",
    lambda **given: (given.get("from", 0), given.get("to", UNBOUNDED)),
    {"from": _INDEX, "to": _INDEX},
    check=_ordered,
)
_TEXT_PATTERN = _patterns(_text_pattern, {})
_PATTERN = _patterns(
    _pattern,
    {
        "model": _model,
        "tool_result": shorthand(partial(TextPattern, TextKind.CONTAINS), _TEXT_PATTERN),
        "message_index": _message_index,
    },
)


# ---- responses


def _response(**given: Any) -> Response:
    if "json" in given:
        given["text"] = compact(given.pop("json")).decode()
    return Response(**given)


def _consistent(given: Mapping[str, Any]) -> Iterator[Fault]:
    if "text" in given and "json" in given:
        yield ("json",), "`json` cannot be combined with `text`; remove one of them"
    for name in ("text", "json", "tool_calls"):
        if "refusal" in given and name in given:
            yield (name,), "a `refusal` cannot be combined with other content; remove one of them"
    if given.get("stop") is Stop.TOOL_USE and "tool_calls" not in given:
        yield ("stop",), "stop reason `tool_use` needs `tool_calls`; add some"


def _adds_up(given: Mapping[str, Any]) -> Iterator[Fault]:
    output, reasoning = given.get("output_tokens"), given.get("reasoning_tokens")
    if output is not None and reasoning is not None and reasoning > output:
        yield ("reasoning_tokens",), f"reasoning is a part of the output, which has {output}"


_COUNT = integer(0, _MOST)
_MS = integer(0, _DAY_MS)

_PACE = Table(
    "a pace",
    Pace,
    {
        "first_token_ms": _MS,
        "tokens_per_second": number(0.001, 1_000_000),
        "tokens_per_chunk": integer(1, _MOST),
        "jitter": number(0, 1),
        "bytes_per_write": integer(1, _MOST),
    },
)
_CALL = Table(
    "a tool call",
    ScriptedCall,
    {"tool": string, "input": json_value},
    required=("tool",),
    meant={"name": "tool", "args": "input", "arguments": "input"},
)
_USAGE = Table(
    "usage",
    ScriptedUsage,
    {
        "input_tokens": _COUNT,
        "output_tokens": _COUNT,
        "reasoning_tokens": _COUNT,
        "cache_read_tokens": _COUNT,
        "cache_write_tokens": _COUNT,
    },
    check=_adds_up,
)
_RESPONSE = shorthand(
    Response,
    Table(
        "a response",
        _response,
        {
            "text": text,
            "json": json_value,
            "reasoning": text,
            "refusal": string,
            "tool_calls": array(_CALL),
            "stop": choice({stop.value: stop for stop in Stop}),
            "usage": _USAGE,
            "delay_ms": _MS,
            "pace": _PACE,
        },
        check=_consistent,
        meant={"content": "text", "$file": "text"},
    ),
)


# ---- failures


def _setting(setting: Setting) -> Reader:
    if setting.choices:
        return choice({word: word for word in setting.choices})
    if setting.type is str:
        return string
    least = -_MOST if setting.minimum is None else setting.minimum
    most = _MOST if setting.maximum is None else setting.maximum
    return integer(int(least), int(most)) if setting.type is int else number(least, most)


def _failure(
    name: str,
    kind: Kind,
    *,
    times: int | None = None,
    of: int | None = None,
    probability: float | None = None,
    **settings: Any,
) -> Failure:
    return Failure(name, {**kind.defaults, **settings}, times, of, probability)


def _occurs(given: Mapping[str, Any]) -> Iterator[Fault]:
    times, of = given.get("times"), given.get("of")
    if "of" in given and "times" not in given:
        yield ("of",), "`of` needs `times`, the number of failing matches; add it"
    elif times is not None and of is not None and times > of:
        yield ("times",), f"`times` {times} exceeds `of` {of}"
    if "probability" in given and "times" in given:
        yield ("probability",), "`probability` cannot be combined with `times`; remove one of them"


_OCCURRENCE: Mapping[str, Reader] = {
    "times": integer(1, _MOST),
    "of": integer(1, _MOST),
    "probability": number(0, 1),
}
_FAILURE = Tagged(
    "a failure",
    {
        name: Table(
            f"the failure type `{name}`",
            partial(_failure, name, kind),
            {**{name: _setting(setting) for name, setting in kind.settings.items()}, **_OCCURRENCE},
            check=_occurs,
        )
        for name, kind in KINDS.items()
    },
)


# ---- rules


def _answers(given: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield the missing parts of a rule or a turn."""
    response: Response | None = given.get("response")
    failure: Failure | None = given.get("failure")
    if "response" not in given and "failure" not in given:
        yield (), "the answer is missing; add `response`, `failure` or both"
    if failure is None:
        return
    kind = KINDS[failure.type]
    if kind.calls and response is not None and not response.tool_calls:
        yield ("failure",), f"`{failure.type}` needs tool calls; add `tool_calls` to the response"
    if "response" not in given and kind.spoils:
        yield ("failure",), f"`{failure.type}` needs a response; add `response`"
    elif "response" not in given and (failure.times or failure.probability) is not None:
        yield ("failure",), "the failure does not always occur; add the `response` for the other matches"


_TURN = Table(
    "a turn",
    Turn,
    {"expect": _PATTERN, "response": _RESPONSE, "failure": _FAILURE},
    required=("expect",),
    check=_answers,
    meant={"pattern": "expect"},
)
_RULE = Table(
    "a rule",
    Rule,
    {
        "pattern": _PATTERN,
        "response": _RESPONSE,
        "failure": _FAILURE,
        "max_matches": _COUNT,
        "turns": array(_TURN),
        "name": string,
    },
    required=("pattern",),
    check=_answers,
    meant={"expect": "pattern", "match": "pattern", "reply": "response"},
)


# ---- the whole


def _key(value: Any, path: FieldPath, reading: Reading) -> str | None:
    if isinstance(value, str) and value and value.isascii() and value.isprintable():
        return value
    reading.wrong(path, "an API key must be printable ASCII text")  # the value is a secret and is not shown
    return None


def _moment(value: Any, path: FieldPath, reading: Reading) -> datetime | None:
    example = "such as 2026-01-01T00:00:00Z"
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        moment = None
    if not isinstance(moment, datetime):
        reading.wrong(path, f"expected a date and a time, {example}, not {shown(value)}")
    elif moment.tzinfo is None:
        reading.wrong(path, f"{shown(value)} has no time zone; write one, {example}")
    elif not _EARLIEST <= moment < _LATEST:
        reading.wrong(
            path, f"{shown(value)} is out of range; expected the years {_EARLIEST.year} to {_LATEST.year - 1}"
        )
    else:
        return moment
    return None


def _together(given: Mapping[str, Any]) -> Iterator[Fault]:
    if given.get("clock") is ClockMode.REAL and "start" in given:
        yield ("start",), "`start` cannot be combined with a real clock; remove `start` or `clock`"
    names = Counter[str]()
    for index, rule in enumerate(given.get("responses") or ()):
        if rule is not None and rule.name is not None:
            names[rule.name] += 1
            if names[rule.name] > 1:
                yield ("responses", index, "name"), f"another rule has the name {shown(rule.name)} already"


_LIMIT = Table(
    "a limit",
    Limit,
    {
        "models": _valid(TextKind.GLOB),
        "requests_per_minute": integer(1, _MOST),
        "tokens_per_minute": integer(1, _MOST),
        "input_tokens_per_minute": integer(1, _MOST),
        "output_tokens_per_minute": integer(1, _MOST),
        "concurrency": integer(1, _MOST),
    },
    meant={"model": "models"},
)
_FIELDS = Table(
    "a scenario",
    Scenario,
    {
        "responses": array(_RULE),
        "default_response": _RESPONSE,
        "failures": array(_FAILURE),
        "limits": array(_LIMIT),
        "keys": array(_key),
        "pace": _PACE,
        "seed": integer(0, _MOST_SEED),
        "clock": choice({mode.value: mode for mode in ClockMode}),
        "start": _moment,
        "counts": choice({scope.value: scope for scope in CountScope}),
    },
    check=_together,
    meant={"rules": "responses", "default": "default_response"},
)
_REMOVED = (
    "turns belong to their rule: make `expect` and `response` of a conversation's first turn the "
    "`pattern` and `response` of a rule in `responses`, and its other turns that rule's `turns`"
)


def scenario(document: Any, reading: Reading) -> Scenario | None:
    """Read a document; return None if it has problems."""
    if isinstance(document, dict) and "conversations" in document:
        reading.wrong(("conversations",), _REMOVED)
        document = {name: value for name, value in document.items() if name != "conversations"}
    found: Scenario | None = _FIELDS(document, (), reading)
    return found if not reading.problems else None
