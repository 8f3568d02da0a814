"""System text of a run: instructions, followed by the task as JSON."""

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
    """Return the system text of all calls of a run, with identical bytes in each.

    Args:
        order: the input of the run.
        subject: the subject of the tests; None for text only.
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
    """Return JSON in one line, equal for equal values."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _environment(environment: Environment) -> dict[str, Any]:
    """Return the known facts about the environment, with bounded previews."""
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
