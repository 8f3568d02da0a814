"""The system prompts, as files that anybody can read; each says its version in its first line."""

from __future__ import annotations

from functools import cache
from importlib import resources

__all__ = ["prompt", "prompts"]


@cache
def prompt(name: str) -> str:
    """The text of a prompt, by the name of its file without the ending."""
    return resources.files(__package__).joinpath(f"{name}.md").read_text("utf-8")


@cache
def prompts() -> dict[str, str]:
    """The texts of all prompts, by their names in order."""
    names = sorted(file.name for file in resources.files(__package__).iterdir() if file.name.endswith(".md"))
    return {name.removesuffix(".md"): prompt(name.removesuffix(".md")) for name in names}
