"""Offline answers: the parser of this project's own prompts, and answers about policies, tests and actions.

Scenario and turn prompts are the JSON object in the last user message:

    a scenario   {"description": TEXT, "seed": NUMBER?, "language": TAG?}; later messages request another
    a turn       {"facts": {turn, actions, changes, log, event, status}}; earlier turns as messages before it

Results of actions that were executed before the narration are merged into the facts of a turn:

    {"accepted": BOOLEAN, changes, log, "world": {event, changes, log, status}?}

Prompts about policies end with a JSON object in the last line of the instructions. The first message begins
with the heading of the task; the last message to a judge ends with a JSON object:

    {"constitution": TEXT, "tools": [{server_name, tool_name, ...}, ...], "lists": {NAME: {kind, values}}}
    {"failed": [{"description": TEXT}, ...]}

Prompts of test generation have such a line too, and a last user message:

    {"task": TEXT, "categories": [{"name": TEXT}, ...], "environment": {...}?, "subject": {"kind", ...}?}
    {"question": "tests" | "reflection" | "assessment", "category": TEXT?, "existing_tests": [TEXT, ...], ...}

An action is matched if a player's words name it literally, or share most of their words with its name alone.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.author.narration import read_earlier_turns
from peripety.author.plots.beats import Scene
from peripety.author.policy_author.rules import build_rules
from peripety.author.policy_author.scenarios import attribute_failures, build_scenarios
from peripety.author.test_author.rounds import assess_tests, reflect_on_tests, write_tests
from peripety.author.text_analysis.languages import (
    HAN,
    KATAKANA,
    OFFLINE_MARK,
    UNSPACED,
    classify_characters,
    clean_text,
)
from peripety.engine.schema_validation import validate_against_schema
from peripety.errors import InvalidArgumentError
from peripety.gateway.types.message import ChatRole, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.gateway.types.message import ChatMessage, Tool
    from peripety.gateway.types.request import GenerateRequest


_DESCRIPTION_SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "name": {"type": ["string", "null"]},
        "params": {"type": "object"},
    },
    "required": ["id"],
}
_FACTS_SCHEMA = {
    "type": "object",
    "properties": {
        "actions": {"type": "array", "items": _DESCRIPTION_SCHEMA},
        "changes": {
            "type": "array",
            "items": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
        "log": {"type": "array", "items": {"type": "string"}},
        "event": {"anyOf": [_DESCRIPTION_SCHEMA, {"type": "null"}]},
        "status": {
            "type": "object",
            "properties": {"kind": {"type": "string"}, "message": {"type": ["string", "null"]}},
            "required": ["kind"],
        },
    },
    "required": ["actions", "changes"],
}
_LEAST_SHARE, _LEAST_LEAD = 0.6, 0.2
"""The least share of common words, and its least lead over that of the next action."""
_STEM = 4
"""The number of letters by which words are compared; shorter words do not count."""
_NEGATION = re.compile(r"\b(?:not|never|no|nicht|nie|kein\w*|nunca)\b|n['\u2019]t\b|[\u4e0d\u522b\u6ca1]")
_TURN_SCHEMA = {
    "type": "object",
    "properties": {"facts": _FACTS_SCHEMA},
    "required": ["facts"],
}


@dataclass(frozen=True, slots=True)
class ScenarioPrompt:
    """A requested scenario; `tries` counts the rejected answers, `language` is empty for that of the text."""

    text: str
    seed: int | None
    tries: int
    language: str = ""


@dataclass(frozen=True, slots=True)
class TurnPrompt:
    """A turn to narrate: its facts, the narration of earlier turns, and the scene if the prompt has it."""

    facts: dict[str, Any]
    history: tuple[str, ...]
    scene: Scene | None = None


def parse_scenario_prompt(texts: Sequence[str]) -> ScenarioPrompt:
    """Return the last description among the user's messages.

    Without the usual object, the first message is one.
    """
    for position in range(len(texts) - 1, -1, -1):
        value = _try_parse_object(texts[position])
        if isinstance(value.get("description"), str):
            seed = value.get("seed")
            whole = seed if isinstance(seed, int) and not isinstance(seed, bool) else None
            language = str(value.get("language") or "")
            return ScenarioPrompt(value["description"], whole, len(texts) - 1 - position, language)
    return ScenarioPrompt(texts[0] if texts else "", None, max(len(texts) - 1, 0))


def parse_turn_prompt(messages: Sequence[ChatMessage], system: str = "") -> TurnPrompt:
    """Return the last turn among the user's messages, and the turns before it.

    Args:
        messages: the messages.
        system: the system text, which ends with the scenario.

    Raises:
        InvalidArgumentError: no message contains the facts of a turn; the violations name the problems.
    """
    # Neighbouring messages of one role are merged into paragraphs.
    turns = [
        (place, turn)
        for place, message in enumerate(messages)
        if message.role is ChatRole.USER
        and "facts" in (turn := _try_parse_object(message.text.rpartition("\n\n")[2]))
    ]
    place, value = turns[-1] if turns else (0, {})
    findings = validate_against_schema(_TURN_SCHEMA, value)
    if findings:
        raise InvalidArgumentError(
            "the last message must be a JSON object with the facts of a turn",
            code="FACTS_INVALID",
            violations=[finding.violation for finding in findings],
        )
    answers = (
        _try_parse_object(message.text) for message in messages[:place] if message.role is ChatRole.ASSISTANT
    )
    return TurnPrompt(
        value["facts"],
        tuple(answer["narrative"] for answer in answers if isinstance(answer.get("narrative"), str)),
        _parse_scene(messages[: place + 1], value, system),
    )


def _parse_scene(messages: Sequence[ChatMessage], turn: Mapping[str, Any], system: str) -> Scene | None:
    """Return the scene of a turn, which is the last message; None without a scenario."""
    scenario = _try_parse_object(system.rstrip().rpartition("\n")[2])
    if not scenario:
        return None
    sides = [(message.role is ChatRole.USER, message.text) for message in messages]
    if sides:
        # Older turns may stand before this one in the same message.
        is_given, text = sides.pop()
        sides.append((is_given, text.rpartition("\n")[0]))
    start, patch = scenario.get("start"), turn.get("view")
    state = {**(start if isinstance(start, dict) else {}), **(patch if isinstance(patch, dict) else {})}
    return Scene(scenario, state, tuple(read_earlier_turns(sides)))


def parse_object(text: str, schema: Mapping[str, Any], where: str, about: str) -> dict[str, Any]:
    """Parse a text as a JSON object with a schema.

    Args:
        text: the text.
        schema: its schema.
        where: its location, for messages.
        about: its purpose, for messages.

    Raises:
        InvalidArgumentError: it is not such an object; the violations name the problems.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    findings = validate_against_schema(schema, value)
    if findings:
        raise InvalidArgumentError(
            f"{where} must be a JSON object with the input of an answer about {about}",
            code="MATERIAL_INVALID",
            violations=[finding.violation for finding in findings],
        )
    return dict(value)


def _try_parse_object(text: str) -> dict[str, Any]:
    """Return the JSON object in a text; empty for any other text."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


_PURPOSE = "a policy"
_MAX_HEADING = 80
_NAME = {"type": "string"}
_ROLES = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"path": _NAME, "role": _NAME},
        "required": ["path", "role"],
    },
}
_TOOL = {
    "type": "object",
    "properties": {
        "server_name": _NAME,
        "tool_name": _NAME,
        "input_schema": {"type": "object"},
        "argument_roles": _ROLES,
    },
    "required": ["server_name", "tool_name"],
}
_LIST = {
    "type": "object",
    "properties": {"kind": _NAME, "values": {"type": "array", "items": _NAME}},
    "required": ["kind", "values"],
}
_POLICY_INPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "constitution": _NAME,
        "tools": {"type": "array", "items": _TOOL},
        "lists": {"type": "object", "additionalProperties": _LIST},
        "other_tools": {"type": "array", "items": _TOOL},
    },
    "required": ["constitution", "tools"],
}
_FAILED_SCENARIOS_SCHEMA = {
    "type": "object",
    "properties": {
        "failed": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"description": _NAME},
                "required": ["description"],
            },
        },
    },
    "required": ["failed"],
}


def _answer_rules(request: GenerateRequest) -> dict[str, Any]:
    material = _policy_input(request)
    lists = {name: one["kind"] for name, one in material.get("lists", {}).items()}
    found = build_rules(material["constitution"], material["tools"], lists, _other_tools(material))
    # The author does not depend on the server of the tools.
    return {
        "rules": [{**rule, "when": _without_key(rule["when"], "servers")} for rule in found.rules],
        "unexpressed": [
            {"sentence": one.sentence, "part": one.part, "rules": list(one.rule_ids)}
            for one in found.unfollowed
        ],
    }


def _answer_scenarios(request: GenerateRequest) -> dict[str, Any]:
    if len(request.messages) > 1:
        # The first answer already contains everything that the text yields.
        return {"scenarios": []}
    material = _policy_input(request)
    written = build_scenarios(
        material["constitution"],
        material["tools"],
        material.get("lists"),
        _other_tools(material),
    )
    return {"scenarios": [_without_key(scenario, "rule_id") for scenario in written]}


def _answer_judgement(request: GenerateRequest) -> dict[str, Any]:
    last = request.messages[-1].text.rpartition("\n")[2]
    value = parse_object(last, _FAILED_SCENARIOS_SCHEMA, "the last message", _PURPOSE)
    return attribute_failures(failed["description"] for failed in value["failed"])


def _answer_patches(_request: GenerateRequest) -> dict[str, Any]:
    return {
        "reasoning": f"The rules already follow the words of the policy {OFFLINE_MARK}.",
        "operations": [],
    }


_POLICY_TASKS: Mapping[str, Callable[[GenerateRequest], dict[str, Any]]] = {
    "# Rule author": _answer_rules,
    "# Scenario author": _answer_scenarios,
    "# Judge of disagreements": _answer_judgement,
    "# Mender of rules": _answer_patches,
}


def _answer_policy_task(request: GenerateRequest) -> dict[str, Any]:
    heading = request.messages[0].text.partition(" (")[0]
    if heading not in _POLICY_TASKS:
        raise InvalidArgumentError(
            f"the first message begins with {heading[:_MAX_HEADING]!r}; begin it with one of"
            f" {', '.join(_POLICY_TASKS)}",
            code="MATERIAL_INVALID",
        )
    return _POLICY_TASKS[heading](request)


POLICY_ANSWERS: Mapping[str, Callable[[GenerateRequest], dict[str, Any]]] = {
    "policy_answer": _answer_policy_task,
}
"""Answer functions by schema name; each raises InvalidArgumentError if its input is missing."""


def _policy_input(request: GenerateRequest) -> dict[str, Any]:
    *_, last = (request.system or "").splitlines() or [""]
    return parse_object(last, _POLICY_INPUT_SCHEMA, "the last line of the instructions", _PURPOSE)


def _other_tools(material: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(one["server_name"], one["tool_name"]) for one in material.get("other_tools", ())]


def _without_key(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != name}


ACTION_PREFIX = "action:"
"""Prefix of the tool names of actions; the action's id follows."""
ASK_PLAYER = "ask_player"
"""The tool that returns a question to the player in place of a turn."""

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\d)")
_SENTENCE = re.compile(r"(?<=[.!?…])\s")
_WITHOUT_SPACES = frozenset({HAN, KATAKANA, UNSPACED})


def match_action(words: str, tools: Sequence[Tool]) -> ToolCall | None:
    """Return the unambiguous action call for a player's words, or None.

    A candidate is an action whose name or id occurs in the words; the longest match wins if it is unique.
    Without one, it is the action whose name shares most words, with a lead over the next one. The words must
    supply every parameter that leaves a choice, with numbers within their bounds.

    Args:
        words: the player's words.
        tools: the offered tools, actions among them.
    """
    said = clean_text(words).casefold()
    fitting = [(length, tool) for tool in tools if (length := _match_length(tool, said))]
    most = max((length for length, _ in fitting), default=0)
    meant = [tool for length, tool in fitting if length == most]
    if not meant and not _NEGATION.search(said):
        (best, score), (_, second) = (*rank_actions(words, tools), *[(None, 0.0)] * 2)[:2]
        is_clear = score >= _LEAST_SHARE and score - second >= _LEAST_LEAD
        meant = [best] if best is not None and is_clear else []
    if len(meant) != 1:
        return None
    given = _parse_parameters(meant[0].input_schema.get("properties", {}), said)
    return None if given is None else ToolCall("offline", meant[0].name, json.dumps(given))


def rank_actions(words: str, tools: Sequence[Tool]) -> list[tuple[Tool, float]]:
    """Return the actions with the share of words that their names have in common with a text, the best first.

    Words are compared by their first letters, and in scripts without spaces by pairs of characters.
    """
    spoken = _find_stems(words)
    ranked = []
    for tool in tools:
        if tool.name.startswith(ACTION_PREFIX):
            named = _find_stems(action_name(tool))
            total = len(spoken) + len(named)
            ranked.append((tool, round(2 * len(spoken & named) / total, 2) if total else 0.0))
    return sorted(ranked, key=lambda one: -one[1])


def _find_stems(text: str) -> frozenset[str]:
    plain = clean_text(text).casefold()
    if _WITHOUT_SPACES.intersection(classify_characters(plain)):
        return frozenset(plain[place : place + 2] for place in range(len(plain) - 1))
    return frozenset(word[:_STEM] for word in _WORD.findall(plain) if len(word) >= _STEM)


def action_name(tool: Tool) -> str:
    """Return the name of an action, the start of its description."""
    return _SENTENCE.split(tool.description, maxsplit=1)[0].rstrip(".!?…") or tool.name


def _match_length(tool: Tool, words: str) -> int:
    """Return the length of the matched name or id of an action; 0 without a match."""
    if not tool.name.startswith(ACTION_PREFIX):
        return 0
    spoken = frozenset(_WORD.findall(words))
    name = clean_text(action_name(tool)).casefold()
    phrases = (_WORD.findall(name), _WORD.findall(tool.name.removeprefix(ACTION_PREFIX).casefold()))
    lengths = [len("".join(phrase)) for phrase in phrases if phrase and spoken.issuperset(phrase)]
    if name in words and _WITHOUT_SPACES.intersection(classify_characters(name)):
        lengths.append(len(name))
    return max(lengths, default=0)


def _parse_parameters(params: Mapping[str, Mapping[str, Any]], words: str) -> dict[str, Any] | None:
    """Return a value for each parameter; None if one would have to be guessed."""
    given = {name: _only_value(schema) for name, schema in params.items()}
    open_ones = [name for name, value in given.items() if value is None]
    numbers = [_parse_number(digits) for digits in _NUMBER.findall(words)] if open_ones else []
    if len(numbers) != len(open_ones):
        return None
    for name, number in zip(open_ones, numbers, strict=True):
        if not _is_in_bounds(params[name], number):
            return None
        given[name] = number
    return given


def _parse_number(digits: str) -> float:
    """Parse a number as people write it, with leading zeros and digits of other scripts."""
    number = float(digits)
    return int(number) if number.is_integer() else number


def _only_value(schema: Mapping[str, Any]) -> Any:
    """Return the value of a parameter that has only one possible value; None for any other parameter."""
    values = list(_allowed_values(schema))
    return values[0] if len(values) == 1 else None


def _allowed_values(schema: Mapping[str, Any]) -> Iterator[Any]:
    if "enum" in schema:
        yield from schema["enum"]
    elif "minimum" in schema and schema["minimum"] == schema.get("maximum"):
        yield schema["minimum"]


def _is_in_bounds(schema: Mapping[str, Any], number: float) -> bool:
    if "enum" in schema:
        return number in schema["enum"]
    match schema:
        case {"type": "integer" | "number" as kind, "minimum": least, "maximum": most}:
            return bool(least <= number <= most) and (kind == "number" or number == int(number))
        case _:
            return False


def merge_call_results(facts: Mapping[str, Any], request: GenerateRequest) -> dict[str, Any]:
    """Return the facts of a turn, with the effects of its narrator's calls."""
    told: dict[str, Any] = dict(facts)
    names = {tool.name: action_name(tool) for tool in request.tools}
    for call, result in _accepted_results(request):
        action = {
            "id": call.name.removeprefix(ACTION_PREFIX),
            "name": names.get(call.name),
            "params": json.loads(call.arguments),
        }
        told["actions"] = [*told["actions"], action]
        for part in (result, result.get("world") or {}):
            # A text that was truncated contains a truncation mark.
            told["changes"] = [*told["changes"], *(one for one in part.get("changes", ()) if "path" in one)]
            told["log"] = [*told.get("log", ()), *part.get("log", ())]
            told |= {key: part[key] for key in ("event", "status") if key in part}
    return told


def _accepted_results(request: GenerateRequest) -> Iterator[tuple[ToolCall, dict[str, Any]]]:
    calls = {call.call_id: call for message in request.messages for call in message.tool_calls}
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolResult) and not part.is_error and part.call_id in calls:
                result = json.loads(part.text)
                if result.get("accepted"):
                    yield calls[part.call_id], result


GENERATE_TEST = "generate_test"
"""The tool that is called once per test."""

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_OBJECT = {"type": "object"}
_TEST_INPUT_SCHEMA = {
    "type": "object",
    "properties": {
        "task": _TEXT,
        "categories": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": _TEXT}, "required": ["name"]},
            "minItems": 1,
        },
        "environment": {
            "type": "object",
            "properties": {
                "prohibited_tools": _TEXTS,
                "files": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"path": _TEXT}, "required": ["path"]},
                },
            },
        },
        "subject": {
            "type": "object",
            "properties": {
                "kind": _TEXT,
                "scenario": _OBJECT,
                "policy": _OBJECT,
                "command": _TEXTS,
                "source": _OBJECT,
            },
            "required": ["kind"],
        },
    },
    "required": ["task", "categories"],
}
_COUNT = {"type": "integer", "minimum": 0}
_QUESTION_SCHEMA = {
    "type": "object",
    "properties": {
        "question": {"enum": ["tests", "reflection", "assessment"]},
        "category": _TEXT,
        "round": _COUNT,
        "at_least": _COUNT,
        "at_most": _COUNT,
        "existing_tests": _TEXTS,
        "survivors": {
            "type": "array",
            "items": {"type": "object", "properties": {"mutant": _TEXT}, "required": ["mutant"]},
        },
        "uncovered": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"target": _TEXT, "description": _TEXT},
                "required": ["target", "description"],
            },
        },
    },
    "required": ["question"],
}


def answer_tests(request: GenerateRequest) -> list[dict[str, Any]]:
    """Return the tests for a request; empty if they were returned before.

    Raises:
        InvalidArgumentError: the input or the question is missing.
        SpecError: the engine rejects the document under test.
    """
    if any(message.role is ChatRole.ASSISTANT for message in request.messages):
        # The first answer already contains everything that follows from the question.
        return []
    return write_tests(*_parse_test_request(request))


def _parse_test_request(request: GenerateRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    *_, last = (request.system or "").splitlines() or [""]
    material = parse_object(last, _TEST_INPUT_SCHEMA, "the last line of the instructions", "tests")
    return material, parse_object(request.messages[-1].text, _QUESTION_SCHEMA, "the last message", "tests")


TEST_ANSWERS: Mapping[str, Callable[[GenerateRequest], dict[str, Any]]] = {
    "tests": lambda request: {"tests": answer_tests(request)},
    "reflection": lambda request: reflect_on_tests(*_parse_test_request(request)),
    "assessment": lambda request: assess_tests(*_parse_test_request(request)),
}
"""Answer functions by schema name; each raises the errors of `answer_tests`."""
