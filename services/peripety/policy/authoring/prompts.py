"""Authoring prompts: texts with the material as JSON, answer schemas, and parsers of answers.

All conversations about the same tools begin with the same bytes, because a prompt cache matches prefixes. The
schema and the system text, which ends with the material, are those of every task. The first message has the
task and the first question. The schema of the task is checked when the answer is there.
"""

from __future__ import annotations

import copy
import json
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety.core.text_files import read_prompt, read_prompts
from peripety.engine.policies.types import ToolRequest
from peripety.engine.schema_validation import validate_against_schema
from peripety.engine.schemas import POLICY_SPEC, schema_document
from peripety.gateway.conversations.conversation import Conversation
from peripety.gateway.types.request import CacheConfig, GenerationOptions, ReasoningEffort, ResponseSchema
from peripety.policy.types import Expectation, ScenarioOrigin, TestScenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from peripety.errors import Finding
    from peripety.gateway.types.message import ChatMessage
    from peripety.gateway.types.request import AcceptCheck
    from peripety.gateway.types.response import Completion, ModelGateway
    from peripety.policy.types import AnnotatedTool, CompileOrder, ScenarioResult


ANSWER_SCHEMA_NAME = "policy_answer"
"""The schema of all answers: the members of every task, none of them required."""
RULES_TASK, SCENARIOS_TASK, JUDGE_TASK, PATCHES_TASK = "rules", "scenarios", "judge", "patches"
"""The tasks, which are also the names of their prompts."""

_EXPECTATIONS = [expectation.value for expectation in Expectation]
_SENTENCE = {"type": "string", "minLength": 1, "maxLength": 500}
_TEXT = {"type": "string", "maxLength": 4_000}


def answer_schema(tools: Sequence[AnnotatedTool]) -> dict[str, Any]:
    """Return the schema of the answers of all tasks about some tools."""
    members: dict[str, Any] = {}
    for schema in _TASK_SCHEMAS.values():
        members |= schema(tools)["properties"]
    return _object_schema(members, optional=tuple(members)) | _rule_definitions(tools)


def rules_schema(tools: Sequence[AnnotatedTool]) -> dict[str, Any]:
    """Return the schema of rules for some tools, limited to existing tools and argument roles."""
    part = _object_schema(
        {"sentence": _TEXT, "part": _TEXT, "rules": {"type": "array", "items": {"type": "string"}}},
    )
    answer = _object_schema(
        {
            "rules": {"type": "array", "items": {"$ref": "#/$defs/Rule"}},
            "unexpressed": {"type": "array", "items": part},
        },
        optional=("unexpressed",),
    )
    return answer | _rule_definitions(tools)


def patches_schema(tools: Sequence[AnnotatedTool]) -> dict[str, Any]:
    """Return the schema of a patch of the rules for some tools."""
    operation = _object_schema(
        {
            "op": {"enum": ["update", "add", "delete"]},
            "rule_id": {"type": "string"},
            "rule": {"$ref": "#/$defs/Rule"},
            "after": {"type": "string"},
        },
        optional=("rule", "after"),
    )
    operations = {"type": "array", "items": operation}
    return _object_schema({"reasoning": _TEXT, "operations": operations}) | _rule_definitions(tools)


def scenarios_schema(tools: Sequence[AnnotatedTool]) -> dict[str, Any]:
    """Return the schema of test scenarios, limited to the servers and names of the given tools."""
    contested = _object_schema({"description": {"type": "string"}, "sentence": _TEXT})
    return _object_schema(
        {
            "scenarios": {"type": "array", "items": _scenario_schema(tools)},
            "contested": {"type": "array", "items": contested},
        },
        optional=("contested",),
    )


def judgement_schema(tools: Sequence[AnnotatedTool]) -> dict[str, Any]:
    """Return the schema of a judgement. Fault is attributed in fields, never in prose."""
    attribution = _object_schema(
        {
            "description": {"type": "string"},
            "blame": {"enum": ["rule", "scenario", "both"]},
            "corrected_decision": {"enum": _EXPECTATIONS},
            "reasoning": _TEXT,
        },
        optional=("corrected_decision",),
    )
    return _object_schema(
        {
            "satisfied": {"type": "boolean"},
            "attributions": {"type": "array", "items": attribution},
            "doubts": {"type": "array", "items": _TEXT},
            "probes": {"type": "array", "items": _scenario_schema(tools)},
        },
        optional=("doubts",),
    )


_TASK_SCHEMAS: Mapping[str, Callable[[Sequence[AnnotatedTool]], dict[str, Any]]] = {
    RULES_TASK: rules_schema,
    SCENARIOS_TASK: scenarios_schema,
    JUDGE_TASK: judgement_schema,
    PATCHES_TASK: patches_schema,
}


def parse_scenarios(
    scenarios: Iterable[Mapping[str, Any]],
    source: ScenarioOrigin,
) -> tuple[TestScenario, ...]:
    """Parse the scenarios of a response that is valid against its schema."""
    return tuple(
        TestScenario(
            scenario["description"],
            ToolRequest(
                scenario["request"]["server_name"],
                scenario["request"]["tool_name"],
                scenario["request"]["arguments"],
                tuple(scenario["request"].get("roles", ())),
            ),
            Expectation(scenario["expected_decision"]),
            scenario["reasoning"],
            source,
        )
        for scenario in scenarios
    )


def _scenario_schema(tools: Sequence[AnnotatedTool]) -> dict[str, Any]:
    request = _object_schema(
        {
            "server_name": {"enum": _unique_names(tool.server_name for tool in tools)},
            "tool_name": {"enum": _unique_names(tool.tool_name for tool in tools)},
            "arguments": {"type": "object"},
            "roles": {"type": "array", "items": {"type": "string"}},
        },
        optional=("roles",),
    )
    return _object_schema(
        {
            "description": _SENTENCE,
            "request": request,
            "expected_decision": {"enum": _EXPECTATIONS},
            "reasoning": _TEXT,
        },
    )


def _rule_definitions(tools: Sequence[AnnotatedTool]) -> dict[str, Any]:
    """Return the definitions of rules from the policy schema, without the fixed server name."""
    known = copy.deepcopy(schema_document(POLICY_SPEC)["$defs"])
    parts = {name: known[name] for name in ("Rule", "Condition", "Matcher", "JsonValue")}
    condition, matcher = parts["Condition"]["properties"], parts["Matcher"]["properties"]
    del condition["servers"]
    condition["tools"]["items"] = {"enum": _unique_names(tool.tool_name for tool in tools)}
    roles = _unique_names(role for tool in tools for _, role in tool.argument_roles)
    if roles:
        condition["argument_roles"]["items"] = matcher["argument_roles"]["items"] = {"enum": roles}
    else:
        del condition["argument_roles"], condition["arguments"], parts["Matcher"]
    return {"$defs": parts}


def _object_schema(properties: dict[str, Any], optional: Sequence[str] = ()) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _unique_names(names: Iterable[str]) -> list[str]:
    return [*dict.fromkeys(names)]


load_prompt = partial(read_prompt, "peripety.policy")
load_prompts = partial(read_prompts, "peripety.policy")


MAX_OUTPUT_TOKENS = 8_192
"""Output token limit of a response; larger responses are split into smaller batches."""

_EXPECTED_TURNS = 6
_MOST_OTHER_TOOLS = 200


def authoring_system_text(material: Mapping[str, Any]) -> str:
    """Return the system text of every task: the common prompt, with the material as JSON in its last line."""
    return f"{load_prompt('common')}\n{to_compact_json(material)}"


class TaskConversation:
    """Conversation about a task, whose prefix a provider can cache.

    Args:
        gateway: the model gateway.
        task: the name of the task, which is also that of its prompt.
        system: the system text of all tasks about the tools.
        tools: the tools; a response must not use others.
        model: as in `GenerateRequest.model`.
        accept: the check of a response that is valid against the schema of the task.
    """

    def __init__(
        self,
        gateway: ModelGateway,
        task: str,
        system: str,
        tools: Sequence[AnnotatedTool],
        model: str | None,
        accept: AcceptCheck | None = None,
    ) -> None:
        own = _TASK_SCHEMAS[task](tools)

        async def check(value: Any) -> Sequence[Finding]:
            found = validate_against_schema(own, value)
            return found or (() if accept is None else await accept(value))

        self._task = task
        self._schema = ResponseSchema(ANSWER_SCHEMA_NAME, answer_schema(tools), check)
        options = GenerationOptions(
            model=model,
            answer_tokens=MAX_OUTPUT_TOKENS,
            cache=CacheConfig(expected_reuse=_EXPECTED_TURNS),
            reasoning_effort=ReasoningEffort.MEDIUM,
        )
        self._conversation = Conversation(gateway, system, options=options)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """The messages of all turns, oldest first."""
        return self._conversation.messages

    async def send(self, question: str) -> Completion:
        """Send a question, with the task before the first one.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        text = question if self._conversation.turns else f"{load_prompt(self._task)}\n{question}"
        return await self._conversation.send(text, schema=self._schema)


def prompt_material(order: CompileOrder, tools: Sequence[AnnotatedTool]) -> dict[str, Any]:
    """Return the material of prompts about some tools; other tools of the policy are only named."""
    own = {(tool.server_name, tool.tool_name) for tool in tools}
    names = [(tool.server_name, tool.tool_name) for tool in order.tools]
    others = [name for name in names if name not in own][:_MOST_OTHER_TOOLS]
    material: dict[str, Any] = {
        "constitution": order.constitution,
        "tools": [tool_to_document(tool) for tool in tools],
        "invariants": [*order.invariants],
        "lists": dict(order.lists),
        **({"context": dict(order.context)} if order.context else {}),
    }
    if others:
        material["other_tools"] = [{"server_name": server, "tool_name": name} for server, name in others]
    return material


def tool_to_document(tool: AnnotatedTool) -> dict[str, Any]:
    """Return a tool as in a policy document, without unset members."""
    document: dict[str, Any] = {"server_name": tool.server_name, "tool_name": tool.tool_name}
    if tool.description:
        document["description"] = tool.description
    if tool.input_schema is not None:
        document["input_schema"] = tool.input_schema
    if tool.argument_roles:
        document["argument_roles"] = [{"path": path, "role": role} for path, role in tool.argument_roles]
    if tool.read_only:
        document["read_only"] = True
    if tool.destructive:
        document["destructive"] = True
    return document


def scenario_to_document(scenario: TestScenario) -> dict[str, Any]:
    """Return a scenario in the form that models read and write."""
    request = scenario.request
    return {
        "description": scenario.description,
        "request": {
            "server_name": request.server_name,
            "tool_name": request.tool_name,
            "arguments": dict(request.arguments),
            "roles": [*request.roles],
        },
        "expected_decision": scenario.expected_decision.value,
        "reasoning": scenario.reasoning,
    }


def rules_to_documents(rules: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rules in the form that models read and write: without servers, which follow from the tools."""
    return [
        {**rule, "when": {key: value for key, value in rule["when"].items() if key != "servers"}}
        for rule in rules
    ]


def rules_about(
    rules: Iterable[Mapping[str, Any]],
    results: Iterable[ScenarioResult],
) -> list[Mapping[str, Any]]:
    """Return the rules that may decide the calls of some scenarios: those that name their tools, or none."""
    called = {result.scenario.request.tool_name for result in results}
    return [rule for rule in rules if called.intersection(rule["when"].get("tools", called))]


def to_compact_json(value: Any) -> str:
    """Return JSON in one line, equal for equal values."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
