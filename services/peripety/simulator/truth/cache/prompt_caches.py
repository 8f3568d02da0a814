"""Prompt caches of all providers, each with its own rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.truth.cache import anthropic, deepseek, openai, stepped
from peripety.simulator.truth.cache.contents import Contents
from peripety.simulator.truth.cache.prefix import Prefixes
from peripety.simulator.truth.cache.visit import Entries, Findings, Visit
from peripety.simulator.truth.models import Family

if TYPE_CHECKING:
    from peripety.simulator.model import Prompt
    from peripety.simulator.state import Table
    from peripety.simulator.truth.models import CacheRules, Model

__all__ = ["PromptCaches"]

# The beginning of the prompt determines the machine of a request.
ROUTED_TOKENS = 256


class PromptCaches:
    """Cache entries of all keys and models.

    Args:
        table: the storage.
        contents: Gemini's explicit caches.
    """

    def __init__(self, table: Table, contents: Table) -> None:
        self._entries = Entries(table)
        self._contents = Contents(contents)

    def visit(self, model: Model, scope: str, prompt: Prompt, now: float) -> Visit:
        """Look up a prompt. Nothing changes before the callbacks of the visit.

        Args:
            model: the data of the model.
            scope: the owner of the cache: the fingerprint of a key.
            prompt: the prompt.
            now: the time of the request.

        Raises:
            ApiError: the cache controls of the prompt are not valid.
        """
        name = prompt.controls.get("cachedContent")
        if name is None:
            findings = self._look(model, scope, prompt, now)
        else:
            findings = self._explicit(model, scope, name, prompt.tokens, now)
        return Visit(self._entries, findings, prompt.tokens, now)

    def _look(self, model: Model, scope: str, prompt: Prompt, now: float) -> Findings:
        rules, entries = model.cache, self._entries
        whose = (rules.family, model.name, scope)
        match rules.family:
            case Family.ANTHROPIC:
                return anthropic.look(rules, entries, Prefixes(whose, prompt), prompt, now)
            case Family.OPENAI_BREAKPOINTS:
                return openai.look(rules, entries, Prefixes(whose, prompt, whole=True), prompt, now)
            case Family.OPENAI_AUTOMATIC:
                return self._automatic(rules, whose, prompt, now)
            case Family.DEEPSEEK:
                user = str(prompt.controls.get("user_id") or "")
                prefixes = Prefixes((*whose, user), prompt, whole=True)
                return deepseek.look(rules, entries, prefixes, now)
            case Family.GEMINI:
                return stepped.look(
                    rules, entries, Prefixes(whose, prompt, whole=True), rules.default_ttl, now
                )
            case Family.NONE:
                return Findings()

    def _explicit(self, model: Model, scope: str, name: str, tokens: int, now: float) -> Findings:
        """Look up a Gemini prompt that starts with stored contents."""
        content = self._contents.get(name, scope, now)
        if content.model != model.name:
            message = (
                f"Model used by GenerateContent request (models/{model.name}) and CachedContent "
                f"(models/{content.model}) has to be the same."
            )
            raise ApiError(ErrorKind.INVALID_REQUEST, message, param="cachedContent")
        return Findings(read=min(content.tokens, tokens))

    def _automatic(self, rules: CacheRules, whose: tuple[str, ...], prompt: Prompt, now: float) -> Findings:
        """Look up a prompt for OpenAI models before GPT-5.6, on the machine of its kind."""
        retention = str(prompt.controls.get("prompt_cache_retention"))
        ttl = retention if retention in rules.ttls else rules.default_ttl
        key = str(prompt.controls.get("prompt_cache_key") or "")
        if prompt.tokens < rules.minimum:
            return Findings()
        kind = next(Prefixes((*whose, key), prompt, whole=True).steps(ROUTED_TOKENS)).key
        machine = str(self._entries.requests(kind, now) // rules.spill)
        prefixes = Prefixes((*whose, key, machine), prompt, whole=True)
        return replace(stepped.look(rules, self._entries, prefixes, ttl, now), counted=kind)
