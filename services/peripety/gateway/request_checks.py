"""Request checks before a provider is called: options, schema, tools, and the limits of the model."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from peripety.core.config import ProviderName
from peripety.engine.schema_validation import validate_against_schema
from peripety.errors import FieldViolation, InvalidArgumentError
from peripety.gateway.message_normalization import to_wire_name
from peripety.gateway.types.message import ToolChoice, ToolChoiceMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.gateway.providers.provider import ProviderCall
    from peripety.gateway.types.message import Tool
    from peripety.gateway.types.request import GenerateRequest, ResponseSchema


_SCHEMA_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_MAX_SEED = 2**53 - 1
_MAX_TEMPERATURE = 2.0
_MAX_STOPS = 16
_MAX_MODEL_NAME = 256
_MAX_CACHED_SCHEMAS = 256


def check_options(request: GenerateRequest) -> None:
    """Reject options that are invalid for every provider.

    Raises:
        InvalidArgumentError: an option is out of range.
    """
    limit, temperature, seed = request.max_output_tokens, request.temperature, request.seed
    violations = []
    if limit is not None and limit < 1:
        violations.append(FieldViolation("max_output_tokens", "must be at least 1"))
    if request.answer_tokens is not None and request.answer_tokens < 1:
        violations.append(FieldViolation("answer_tokens", "must be at least 1"))
    if temperature is not None and not 0 <= temperature <= _MAX_TEMPERATURE:
        violations.append(FieldViolation("temperature", f"must be from 0 to {_MAX_TEMPERATURE}"))
    if seed is not None and not 0 <= seed <= _MAX_SEED:
        violations.append(FieldViolation("seed", "must be from 0 to 2^53 - 1"))
    if len(request.stop_sequences) > _MAX_STOPS or not all(request.stop_sequences):
        violations.append(
            FieldViolation("stop_sequences", f"must be at most {_MAX_STOPS}, none of them empty"),
        )
    if len(request.model or "") > _MAX_MODEL_NAME:
        violations.append(FieldViolation("model", f"must have at most {_MAX_MODEL_NAME} characters"))
    violations += [
        FieldViolation(f"fallback_models[{index}]", f"must have 1 to {_MAX_MODEL_NAME} characters")
        for index, model in enumerate(request.fallback_models)
        if not 0 < len(model) <= _MAX_MODEL_NAME
    ]
    if request.cache.expected_reuse < 0:
        violations.append(FieldViolation("cache.expected_reuse", "must be 0 or more"))
    _raise_if_any("options invalid", violations)


def check_schema(schema: ResponseSchema) -> None:
    """Reject a schema that is not usable, or that references other documents.

    Raises:
        InvalidArgumentError: the name or the document is wrong.
    """
    if not _SCHEMA_NAME.fullmatch(schema.name):
        _raise_if_any(
            "schema invalid",
            [FieldViolation("schema.name", "must be 1 to 64 letters, digits, '_' or '-'")],
        )
    problem = _schema_problem(schema.document)
    if problem is not None:
        _raise_if_any("schema invalid", [FieldViolation("schema.document", problem)])


def check_tools(tools: Sequence[Tool], choice: ToolChoice | None) -> None:
    """Reject tools with invalid or duplicate names, and a tool choice that names an unknown tool.

    Raises:
        InvalidArgumentError: a name, a schema or the choice is wrong.
    """
    violations: list[FieldViolation] = []
    names: set[str] = set()
    for index, tool in enumerate(tools):
        name, problem = to_wire_name(tool.name), _schema_problem(tool.input_schema)
        if not tool.name:
            violations.append(FieldViolation(f"tools[{index}].name", "is empty"))
        if name in names:
            violations.append(FieldViolation(f"tools[{index}].name", f"must be unique: '{tool.name}'"))
        if problem is None and tool.input_schema.get("type") != "object":
            problem = 'must be the schema of an object: "type": "object"'
        if problem is not None:
            violations.append(FieldViolation(f"tools[{index}].input_schema", problem))
        names.add(name)
    if choice is not None:
        violations += _tool_choice_violations(choice, [tool.name for tool in tools])
    _raise_if_any("tools invalid", violations)


def _tool_choice_violations(choice: ToolChoice, names: Sequence[str]) -> Iterator[FieldViolation]:
    if not names and choice.mode is not ToolChoiceMode.NONE:
        yield FieldViolation("tool_choice", "requires tools")
    elif choice.mode is ToolChoiceMode.NAMED and choice.name not in names:
        yield FieldViolation("tool_choice.name", "must be one of the offered tools")
    elif choice.mode is not ToolChoiceMode.NAMED and choice.name is not None:
        yield FieldViolation("tool_choice.name", "is only valid for the mode that names a tool")


def _schema_problem(schema: Mapping[str, Any]) -> str | None:
    """Return why a JSON Schema cannot be used; None if it can."""
    return _schema_text_problem(json.dumps(schema, ensure_ascii=False))


@lru_cache(_MAX_CACHED_SCHEMAS)
def _schema_text_problem(text: str) -> str | None:
    """Return the same for the schema's JSON text.

    Cached, because clients send the same schemas repeatedly.
    """
    schema = json.loads(text)
    # A resolver of external references would read files and addresses that the client cannot reach itself.
    if any(not reference.startswith("#") for reference in _find_references(schema)):
        return "refers to another document; copy the definitions into its own $defs"
    try:
        validate_against_schema(schema, None)
    except ValueError as error:
        return f"is not a valid JSON Schema: {str(error).partition(chr(10))[0]}"
    return None


def _find_references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (node[key] for key in _REFERENCES if isinstance(node.get(key), str))
        for value in node.values():
            yield from _find_references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _find_references(value)


def _raise_if_any(problem: str, violations: Sequence[FieldViolation]) -> None:
    if violations:
        reasons = "; ".join(f"{violation.field} {violation.reason}" for violation in violations)
        raise InvalidArgumentError(f"{problem}: {reasons}", violations=violations)


def reject_unsupported(call: ProviderCall, violations: Iterable[FieldViolation]) -> None:
    """Reject a call that uses what its model does not support, if dropping it would change the meaning.

    Raises:
        InvalidArgumentError: it does; the message names the model, the fields and the alternatives.
    """
    found = list(violations)
    if found:
        reasons = "; ".join(f"{violation.field} {violation.reason}" for violation in found)
        raise InvalidArgumentError(
            f"model {call.data.provider}/{call.model} does not support the request: {reasons}",
            violations=found,
        )


def requires_tool_call(request: GenerateRequest) -> bool:
    """Return True if a tool call is required."""
    choice = request.tool_choice
    return choice is not None and choice.mode in {ToolChoiceMode.ANY, ToolChoiceMode.NAMED}


def required_tool_violations(call: ProviderCall) -> Iterator[FieldViolation]:
    """Yield the violation of a required tool call, for models that do not support it."""
    if requires_tool_call(call.request) and not call.data.traits.forced_tool_choice:
        reason = "cannot require a tool call of this model; leave the choice to it, or use another model"
        yield FieldViolation("tool_choice.mode", reason)


def parallel_call_violations(request: GenerateRequest) -> Iterator[FieldViolation]:
    """Yield the violation of one call at a time, for providers that do not support it."""
    choice = request.tool_choice or ToolChoice()
    if choice.disable_parallel and choice.mode is not ToolChoiceMode.NONE:
        reason = "cannot be set for this model; remove it, or use another model"
        yield FieldViolation("tool_choice.disable_parallel", reason)


def stop_sequence_violations(request: GenerateRequest, maximum: int) -> Iterator[FieldViolation]:
    """Yield the violation of more stop sequences than a provider accepts."""
    if len(request.stop_sequences) > maximum:
        yield FieldViolation("stop_sequences", f"must be at most {maximum} for this model; remove some")


_MAX_TOOLS = {
    ProviderName.OPENAI: 128,
    ProviderName.OPENAI_RESPONSES: 128,
    ProviderName.AZURE: 128,
    ProviderName.DEEPSEEK: 128,
    ProviderName.GEMINI: 512,
}
_ARGUMENT_NAMES = {ProviderName.ANTHROPIC: re.compile(r"[A-Za-z0-9_.-]{1,64}")}


def unsupported_tools(tools: Sequence[Tool], provider: ProviderName) -> Iterator[FieldViolation]:
    """Yield the violations for which a provider would reject tools; empty if it accepts all of them."""
    most, argument = _MAX_TOOLS.get(provider), _ARGUMENT_NAMES.get(provider)
    if most is not None and len(tools) > most:
        yield FieldViolation("tools", f"are {len(tools)}, and {provider.value} accepts at most {most}")
    if argument is None:
        return
    for index, tool in enumerate(tools):
        for name in tool.input_schema.get("properties", {}):
            if not argument.fullmatch(name):
                reason = f"has '{name[:80]}'; {provider.value} accepts names of 1 to 64 of A-Z a-z 0-9 _ . -"
                yield FieldViolation(f"tools[{index}].input_schema.properties", reason)
