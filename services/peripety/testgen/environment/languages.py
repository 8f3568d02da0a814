"""Programming languages of a directory, by file suffixes and manifests."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["languages_in"]

_BY_SUFFIX = {
    ".c": "C",
    ".cc": "C++",
    ".cpp": "C++",
    ".cs": "C#",
    ".go": "Go",
    ".java": "Java",
    ".js": "JavaScript",
    ".jsx": "JavaScript",
    ".kt": "Kotlin",
    ".php": "PHP",
    ".pl": "Perl",
    ".py": "Python",
    ".r": "R",
    ".rb": "Ruby",
    ".rs": "Rust",
    ".sh": "shell",
    ".sql": "SQL",
    ".swift": "Swift",
    ".ts": "TypeScript",
    ".tsx": "TypeScript",
}
_GO_VERSION = re.compile(r"^go\s+(\S+)", re.MULTILINE)
_MAX_MANIFEST = 64 * 1024


def languages_in(directory: Path, files: Sequence[Path]) -> tuple[str, ...]:
    """Return the languages, most frequent first, with the version that a manifest requires."""
    counts = Counter(_BY_SUFFIX[path.suffix.lower()] for path in files if path.suffix.lower() in _BY_SUFFIX)
    versions = _versions(directory)
    for language in versions:
        counts.setdefault(language, 0)
    ordered = sorted(counts, key=lambda language: (-counts[language], language))
    return tuple(f"{language} {versions.get(language, '')}".strip() for language in ordered)


def _versions(directory: Path) -> dict[str, str]:
    found = {}
    project = _toml(directory / "pyproject.toml").get("project")
    if isinstance(project, dict) and isinstance(project.get("requires-python"), str):
        found["Python"] = project["requires-python"]
    package = _toml(directory / "Cargo.toml").get("package")
    if isinstance(package, dict) and isinstance(package.get("rust-version"), str):
        found["Rust"] = package["rust-version"]
    engines = _json(directory / "package.json").get("engines")
    if isinstance(engines, dict) and isinstance(engines.get("node"), str):
        found["JavaScript"] = engines["node"]
    if go := _GO_VERSION.search(_text(directory / "go.mod")):
        found["Go"] = go[1]
    return {language: version[:32] for language, version in found.items()}


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_MANIFEST).decode()
    except (OSError, UnicodeDecodeError):
        return ""


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(_text(path))
    except (ValueError, RecursionError):
        return {}


def _json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(_text(path) or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
