"""Pages of the documentation: what commands print there, and the documents they show part by part."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from peripety.cli.app import app
from support.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path


_SHOWN = re.compile(r"```json\n(.*?)```", re.DOTALL)


def with_output(page: Path, *arguments: str) -> bytes:
    """The page with what a command prints now; the last argument is a file of the repository."""
    command = f"\n$ peripety {' '.join(arguments)}\n"
    *before, file = arguments
    printed = CliRunner().invoke(app, [*before, str(ROOT / file)]).stdout
    start, found, rest = page.read_text(encoding="utf-8").partition(command)
    assert found, f"{page.name} does not show: {command.strip()}"
    return f"{start}{command}{printed}{rest[rest.index('```') :]}".encode()


def document_shown(section: str) -> dict[str, Any]:
    """The document whose parts stand in a section, each as JSON; lists go on from part to part."""
    document: dict[str, Any] = {}
    for part in _SHOWN.findall(section):
        for key, value in json.loads(part).items():
            if isinstance(value, list):
                document.setdefault(key, []).extend(value)
            else:
                assert key not in document, key
                document[key] = value
    return document
