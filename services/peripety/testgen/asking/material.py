"""The system text of a run: instructions, and as its last line what the run is about."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.testgen.prompts import prompt

if TYPE_CHECKING:
    from peripety.testgen.model import Environment, TestGenOrder
    from peripety.testgen.subjects.subject import Subject

__all__ = ["as_text", "system_text"]

_PREVIEW_CHARACTERS = 1_500
_ALL_PREVIEWS_CHARACTERS = 12_000
_NAMES_OF_A_FILE = 40


def system_text(order: TestGenOrder, subject: Subject | None) -> str:
    """The system text of all questions of a run, the same bytes in each.

    Args:
        order: what is to be tested.
        subject: what the tests are run on; None for nothing.
    """
    material: dict[str, Any] = {
        "task": order.description,
        "categories": [
            {"name": category.name, "description": category.description} for category in order.categories
        ],
    }
    if order.environment is not None:
        material["environment"] = _environment(order.environment)
    if subject is not None:
        material["subject"] = {"kind": subject.kind.value, **subject.material}
    return f"{prompt('system')}\n{as_text(material)}"


def as_text(value: Any) -> str:
    """JSON in one line, the same for the same value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _environment(environment: Environment) -> dict[str, Any]:
    """What is known of it, of long files the beginning."""
    left = _ALL_PREVIEWS_CHARACTERS
    files = []
    for file in environment.files:
        preview = file.preview[: min(_PREVIEW_CHARACTERS, left)]
        left -= len(preview)
        told = {
            "path": file.path,
            "size_bytes": file.size_bytes,
            "structure": [*file.structure[:_NAMES_OF_A_FILE]],
            "preview": preview,
        }
        files.append({name: value for name, value in told.items() if value})
    told = {
        "platform": environment.platform,
        "languages": [*environment.languages],
        "available_tools": [*environment.available_tools],
        "prohibited_tools": [*environment.prohibited_tools],
        "files": files,
        "file_count": environment.file_count,
        "cpu_count": environment.cpu_count,
        "memory_bytes": environment.memory_bytes,
    }
    return {name: value for name, value in told.items() if value}
