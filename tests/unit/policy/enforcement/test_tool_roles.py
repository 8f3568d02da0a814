"""Roles that are guessed from input schemas."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.policy.enforcement.tool_roles import guess_roles

TEXT = {"type": "string"}


def _guess(tool_name: str, **properties: Any) -> dict[str, str]:
    schema = {"type": "object", "properties": properties}
    return {guess.path: guess.role for guess in guess_roles(tool_name, schema)}


@pytest.mark.parametrize(
    ("tool_name", "properties", "roles"),
    [
        ("read_file", {"path": TEXT}, {"/path": "read_path"}),
        ("readFile", {"filePath": TEXT}, {"/filePath": "read_path"}),
        ("write_file", {"path": TEXT, "content": TEXT}, {"/path": "write_path"}),
        ("git_checkout", {"repo_path": TEXT, "branch_name": TEXT}, {"/repo_path": "write_path"}),
        (
            "move_file",
            {"source": TEXT, "destination": TEXT},
            {"/source": "write_path", "/destination": "write_path"},
        ),
        ("read_many", {"paths": {"type": "array", "items": TEXT}}, {"/paths": "read_path"}),
        ("fetch", {"url": TEXT, "max_length": {"type": "integer"}}, {"/url": "url"}),
        (
            "send",
            {"to": {"type": "array", "items": {"type": "string", "format": "email"}}},
            {"/to": "recipient"},
        ),
        ("look", {"where": {"type": "string", "format": "uri"}}, {"/where": "url"}),
        ("search", {"query": TEXT, "pathological": TEXT, "profile": TEXT}, {}),
        ("count", {"path": {"type": "integer"}}, {}),
        ("odd", {"a/path": TEXT}, {"/a~1path": "read_path"}),
    ],
)
def test_roles_are_guessed_from_names_and_formats(
    tool_name: str, properties: dict[str, Any], roles: dict[str, str]
) -> None:
    assert _guess(tool_name, **properties) == roles


def test_each_guess_has_a_reason() -> None:
    schema = {"properties": {"path": TEXT}}
    assert [guess.reason for guess in guess_roles("read_file", schema)] == [
        "name contains path, and read_file reads"
    ]
