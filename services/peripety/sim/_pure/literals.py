"""Checks of literal values: templates, operations, and keys that are dangerous to clients."""

from __future__ import annotations

import re
from typing import Any

from peripety.sim._pure.operators import OPERATORS
from peripety.sim._pure.paths import FORBIDDEN_KEYS

__all__ = ["forbidden_key", "looks_like_code"]

_TEMPLATE = re.compile(r"\{\{|\$\{|\{%|<%")


def looks_like_code(value: Any) -> bool:
    """Return True if a value contains an operation, or a text that resembles a template."""
    if isinstance(value, str):
        return _TEMPLATE.search(value) is not None
    if isinstance(value, list):
        return any(looks_like_code(item) for item in value)
    if isinstance(value, dict):
        return (len(value) == 1 and next(iter(value)) in OPERATORS) or any(
            looks_like_code(item) for item in value.values()
        )
    return False


def forbidden_key(value: Any) -> str | None:
    """Return the first dangerous key of a value, depth first and in key order."""
    if isinstance(value, dict):
        for key in sorted(value):
            found = key if key in FORBIDDEN_KEYS else forbidden_key(value[key])
            if found is not None:
                return found
    if isinstance(value, list):
        return next((key for item in value if (key := forbidden_key(item)) is not None), None)
    return None
