"""The system prompt of the test author and reviewer."""

from __future__ import annotations

from functools import partial

from peripety.gateway.prompts import prompt_text, prompt_texts

__all__ = ["prompt", "prompts"]

prompt = partial(prompt_text, __name__)
prompts = partial(prompt_texts, __name__)
