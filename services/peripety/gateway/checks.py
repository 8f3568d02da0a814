"""What is refused before any provider is asked, and the one form that messages are brought into."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from peripety.errors import FieldViolation, InvalidArgumentError
from peripety.gateway.model import ChatMessage, ChatRole
from peripety.sim.schema import check

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.gateway.model import GenerateRequest, ResponseSchema

__all__ = ["check_options", "check_schema", "merge_messages"]

_SCHEMA_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_MAX_SEED = 2**53 - 1
_MAX_TEMPERATURE = 2.0


def check_options(request: GenerateRequest) -> None:
    """Refuse options that no provider could make sense of.

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
    _refuse("The options cannot be used", violations)


def check_schema(schema: ResponseSchema) -> None:
    """Refuse a schema that cannot be worked with, or that points outside of itself.

    Raises:
        InvalidArgumentError: the name or the document is wrong.
    """
    if not _SCHEMA_NAME.fullmatch(schema.name):
        _refuse(
            "The schema cannot be used",
            [FieldViolation("schema.name", "must be 1 to 64 letters, digits, '_' or '-'")],
        )
    # Whoever resolves a reference to elsewhere reads files and addresses that the caller could not reach.
    foreign = [ref for ref in _references(schema.document) if not ref.startswith("#")]
    if foreign:
        _refuse(
            "The schema cannot be used",
            [
                FieldViolation(
                    "schema.document", "refers to another document; copy what it needs into its own $defs"
                )
            ],
        )
    try:
        check(schema.document, None)
    except ValueError as error:
        problem = str(error).partition("\n")[0]
        _refuse(
            "The schema cannot be used",
            [FieldViolation("schema.document", f"is not a valid JSON Schema: {problem}")],
        )


def merge_messages(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Bring messages into the form that every provider takes: neighbours of one role become one message.

    Raises:
        InvalidArgumentError: there is no message, one is empty, or the first or last is not the user's.
    """
    violations = [
        FieldViolation(f"messages[{index}].content", "is empty; leave the message out")
        for index, message in enumerate(messages)
        if not message.content
    ]
    if not messages:
        violations.append(FieldViolation("messages", "is empty; a system text alone asks for nothing"))
    elif messages[0].role is not ChatRole.USER:
        violations.append(FieldViolation("messages[0].role", "must be user; instructions go into system"))
    elif messages[-1].role is not ChatRole.USER:
        last = f"messages[{len(messages) - 1}].role"
        violations.append(FieldViolation(last, "must be user, who asks for the answer"))
    _refuse("The prompt cannot be sent", violations)
    return tuple(
        ChatMessage(role, "\n\n".join(message.content for message in group))
        for role, group in groupby(messages, key=lambda message: message.role)
    )


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
