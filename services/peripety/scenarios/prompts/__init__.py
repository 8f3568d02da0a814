"""The system prompts, as files that anybody can read; each says its version in its first line."""

from __future__ import annotations

from functools import cache
from importlib import resources

__all__ = ["prompt"]


@cache
def prompt(name: str) -> str:
    """The text of a prompt, by the name of its file without the ending."""
    return resources.files(__package__).joinpath(f"{name}.md").read_text("utf-8")
