"""Endpoint of a provider: server and credentials."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import SecretStr

__all__ = ["Endpoint"]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server and one account there.

    Attributes:
        name: the provider.
        base_url: base URL of its API, without trailing slash.
        key: the API key; used only in a header.
        model: the default model.
        base_variable: the variable of the base URL, for messages.
        key_variable: the variable of the key, for messages.
    """

    name: str
    base_url: str
    key: SecretStr | None = None
    model: str | None = None
    base_variable: str = "OPENAI_API_BASE"
    key_variable: str = "OPENAI_API_KEY"

    @property
    def account(self) -> str:
        """Return a digest of server and key."""
        secret = self.key.get_secret_value() if self.key else ""
        return sha256(f"{self.base_url}\n{secret}".encode()).hexdigest()
