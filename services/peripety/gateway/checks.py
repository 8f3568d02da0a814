"""Checks of a request's options, schema and tools, before a provider is called."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from peripety.errors import FieldViolation, InvalidArgumentError
from peripety.gateway.model import ToolChoiceMode
from peripety.gateway.tool_names import to_wire_name
from peripety.sim.schema import check

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.gateway.model import GenerateRequest, ResponseSchema, Tool, ToolChoice

__all__ = ["check_options", "check_schema", "check_tools"]

_SCHEMA_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_MAX_SEED = 2**53 - 1
_MAX_TEMPERATURE = 2.0
_MAX_STOPS = 16
_MAX_MODEL_NAME = 256
_KEPT_VERDICTS = 256


def check_options(request: GenerateRequest) -> None:
    """Reject options that are invalid for every provider.

    Raises:
        InvalidArgumentError: an option is out of range.
    """
    limit, temperature, seed = request.max_output_tokens, request.temperature, request.seed
    violations = []
    if limit is not None and limit < 1:
        violations.append(FieldViolation("max_output_tokens", "must be at least 1"))
    if temperature is not None and not 0 <= temperature <= _MAX_TEMPERATURE:
        violations.append(FieldViolation("temperature", f"must be from 0 to {_MAX_TEMPERATURE}"))
    if seed is not None and not 0 <= seed <= _MAX_SEED:
        violations.append(FieldViolation("seed", "must be from 0 to 2^53 - 1"))
    if len(request.stop_sequences) > _MAX_STOPS or not all(request.stop_sequences):
        violations.append(
            FieldViolation("stop_sequences", f"must be at most {_MAX_STOPS}, none of them empty")
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
    _refuse("options invalid", violations)


def check_schema(schema: ResponseSchema) -> None:
    """Reject a schema that is not usable, or that references other documents.

    Raises:
        InvalidArgumentError: the name or the document is wrong.
    """
    if not _SCHEMA_NAME.fullmatch(schema.name):
        _refuse(
            "schema invalid",
            [FieldViolation("schema.name", "must be 1 to 64 letters, digits, '_' or '-'")],
        )
    problem = _problem_of(schema.document)
    if problem is not None:
        _refuse("schema invalid", [FieldViolation("schema.document", problem)])


def check_tools(tools: Sequence[Tool], choice: ToolChoice | None) -> None:
    """Reject tools with invalid or duplicate names, and a tool choice that names an unknown tool.

    Raises:
        InvalidArgumentError: a name, a schema or the choice is wrong.
    """
    violations: list[FieldViolation] = []
    names: set[str] = set()
    for index, tool in enumerate(tools):
        name, problem = to_wire_name(tool.name), _problem_of(tool.input_schema)
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
        violations += _problems_of_choice(choice, [tool.name for tool in tools])
    _refuse("tools invalid", violations)


def _problems_of_choice(choice: ToolChoice, names: Sequence[str]) -> Iterator[FieldViolation]:
    if not names and choice.mode is not ToolChoiceMode.NONE:
        yield FieldViolation("tool_choice", "requires tools")
    elif choice.mode is ToolChoiceMode.NAMED and choice.name not in names:
        yield FieldViolation("tool_choice.name", "must be one of the offered tools")
    elif choice.mode is not ToolChoiceMode.NAMED and choice.name is not None:
        yield FieldViolation("tool_choice.name", "is only valid for the mode that names a tool")


def _problem_of(schema: Mapping[str, Any]) -> str | None:
    """Return why a JSON Schema cannot be used; None if it can."""
    return _problem_in(json.dumps(schema, ensure_ascii=False))


@lru_cache(_KEPT_VERDICTS)
def _problem_in(text: str) -> str | None:
    """Return the same for the schema's JSON text.

    Cached, because clients send the same schemas repeatedly.
    """
    schema = json.loads(text)
    # A resolver of external references would read files and addresses that the client cannot reach itself.
    if any(not reference.startswith("#") for reference in _references(schema)):
        return "refers to another document; copy the definitions into its own $defs"
    try:
        check(schema, None)
    except ValueError as error:
        return f"is not a valid JSON Schema: {str(error).partition(chr(10))[0]}"
    return None


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (node[key] for key in _REFERENCES if isinstance(node.get(key), str))
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _refuse(problem: str, violations: Sequence[FieldViolation]) -> None:
    if violations:
        reasons = "; ".join(f"{violation.field} {violation.reason}" for violation in violations)
        raise InvalidArgumentError(f"{problem}: {reasons}", violations=violations)
