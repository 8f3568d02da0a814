"""Prompt files: system prompts as Markdown files with their version in the first line."""

from __future__ import annotations

from functools import cache
from importlib import resources

__all__ = ["prompt_text", "prompt_texts"]


@cache
def prompt_text(package: str, name: str) -> str:
    """Return a prompt by its package and the name of its file without extension."""
    return resources.files(package).joinpath(f"{name}.md").read_text("utf-8")


@cache
def prompt_texts(package: str) -> dict[str, str]:
    """Return all prompts of a package, by name, sorted."""
    files = sorted(file.name for file in resources.files(package).iterdir() if file.name.endswith(".md"))
    return {name: prompt_text(package, name) for name in (file.removesuffix(".md") for file in files)}
