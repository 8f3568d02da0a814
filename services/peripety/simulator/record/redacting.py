"""Redaction of credentials in recordings: observed credentials, and text that looks like one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["REDACTED", "Redactor"]

REDACTED = "[redacted]"

_SHORTEST = 8  # shorter values would occur in ordinary words
_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
_PARAMS = ("key", "api_key", "access_token")
_KNOWN = re.compile(
    r"\bsk-[\w-]{16,}"  # OpenAI, Anthropic, DeepSeek and others
    r"|\bAIza[\w-]{30,}"  # Google
    r"|\bya29\.[\w.-]{20,}"
    r"|\b(?:gsk|hf|xai|pplx|r8|ghp|gho|ghs|glpat|xoxb|xoxp)[_-][\w-]{16,}"
    r"|\bgithub_pat_\w{20,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"  # JSON web tokens
    r"|(?<=Bearer )[\w.~+/=-]{16,}"
)


class Redactor:
    """Remover of credentials from text."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def learn(self, headers: Mapping[str, str], params: Mapping[str, str]) -> None:
        """Add the credentials of a request.

        Args:
            headers: the headers, names in lower case.
            params: the query parameters.
        """
        values = [headers.get(name, "") for name in _HEADERS] + [params.get(name, "") for name in _PARAMS]
        for value in values:
            self.note(value.rpartition(" ")[2])  # without the scheme

    def note(self, credential: str) -> None:
        """Add a credential."""
        if len(credential) >= _SHORTEST:
            self._seen.add(credential)

    def text(self, text: str) -> str:
        """Return a text without credentials."""
        for credential in sorted(self._seen, key=len, reverse=True):
            text = text.replace(credential, REDACTED)
        return _KNOWN.sub(REDACTED, text)

    def value(self, value: Any) -> Any:
        """Return a JSON value without credentials."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {self.text(name): self.value(each) for name, each in value.items()}
            case list():
                return [self.value(each) for each in value]
        return value
