"""Offline answers of the test author.

The last line of the instructions is a JSON object:
    {"task": TEXT, "categories": [{"name": TEXT}, ...], "environment": {...}?, "subject": {"kind", ...}?}
The last user message is one, too:
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
"""The tool that is called once per test."""

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
    """Return the tests for a request; empty if they were returned before.

    Raises:
        InvalidArgumentError: the input or the question is missing.
        SpecError: the engine rejects the document under test.
    """
    if any(message.role is ChatRole.ASSISTANT for message in request.messages):
        # The first answer already contains everything that follows from the question.
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
"""Answer functions by schema name; each raises the errors of `tests_for`."""
