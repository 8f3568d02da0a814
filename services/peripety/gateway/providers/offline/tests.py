"""Answers of an author of tests.

The last line of the instructions is a JSON object:
    {"task": TEXT, "categories": [{"name": TEXT}, ...], "environment": {...}?, "subject": {"kind", ...}?}
and so is the last message of a person:
    {"question": "tests" | "reflection" | "assessment", "category": TEXT?, "existing_tests": [TEXT, ...], ...}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.testing import assessment, reflection, write_tests
from peripety.gateway.model import ChatRole
from peripety.gateway.providers.offline.asked import object_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.gateway.model import GenerateRequest

__all__ = ["ANSWERS", "GENERATE_TEST", "tests_for"]

GENERATE_TEST = "generate_test"
"""The tool that is called once for each test."""

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_OBJECT = {"type": "object"}
_MATERIAL = {
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
_QUESTION = {
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


def tests_for(request: GenerateRequest) -> list[dict[str, Any]]:
    """The tests that a request asks for; none where they were written before.

    Raises:
        InvalidArgumentError: there is no material, or no question.
        SpecError: what is to be tested is no document that the engine takes.
    """
    if any(message.role is ChatRole.ASSISTANT for message in request.messages):
        # All that follows from the question was said in the first answer.
        return []
    return write_tests(*_asked(request))


def _asked(request: GenerateRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    *_, last = (request.system or "").splitlines() or [""]
    material = object_in(last, _MATERIAL, "the last line of the instructions", "tests")
    return material, object_in(request.messages[-1].text, _QUESTION, "the last message", "tests")


ANSWERS: Mapping[str, Callable[[GenerateRequest], dict[str, Any]]] = {
    "tests": lambda request: {"tests": tests_for(request)},
    "reflection": lambda request: reflection(*_asked(request)),
    "assessment": lambda request: assessment(*_asked(request)),
}
"""By the name of its schema, what makes an answer; each raises what `tests_for` raises."""
