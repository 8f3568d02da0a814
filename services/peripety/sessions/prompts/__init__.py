"""System prompts of the narrator."""

from __future__ import annotations

from functools import partial

from peripety.gateway.prompts import prompt_text

__all__ = ["prompt"]

prompt = partial(prompt_text, __name__)
