"""Where a provider answers, and with which credentials it is asked."""

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
        base_url: where its API starts; without a slash at its end.
        key: goes into a header and nowhere else.
        model: the model to ask for when a request names none.
        base_variable: the variable that sets the base URL, for messages.
        key_variable: the variable that sets the key, for messages.
    """

    name: str
    base_url: str
    key: SecretStr | None = None
    model: str | None = None
    base_variable: str = "OPENAI_API_BASE"
    key_variable: str = "OPENAI_API_KEY"

    @property
    def account(self) -> str:
        """A digest of the server and the key."""
        secret = self.key.get_secret_value() if self.key else ""
        return sha256(f"{self.base_url}\n{secret}".encode()).hexdigest()
