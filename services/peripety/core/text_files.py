"""Bounded text files: lines of untrusted files, and system prompts with a version in their first line."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import IO


@cache
def read_prompt(package: str, name: str) -> str:
    """Return a prompt by its package and the name of its file without extension."""
    return resources.files(package).joinpath("prompts", f"{name}.md").read_text("utf-8")


@cache
def read_prompts(package: str) -> dict[str, str]:
    """Return all prompts of a package, by name, sorted."""
    files = sorted(
        file.name
        for file in resources.files(package).joinpath("prompts").iterdir()
        if file.name.endswith(".md")
    )
    return {name: read_prompt(package, name) for name in (file.removesuffix(".md") for file in files)}


def read_bounded_line(file: IO[bytes], max_bytes: int) -> bytes:
    """Read the next line of a file, truncated to a maximum length; empty at the end of the file."""
    line = rest = file.readline(max_bytes)
    while rest and not rest.endswith(b"\n"):
        rest = file.readline(max_bytes)
    return line
