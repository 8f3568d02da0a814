"""Cache diagnosis for Anthropic: what changed since an earlier request and invalidated the cache."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self

from peripety.simulator.model import Section

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.simulator.model import Block, Prompt

__all__ = ["Change", "Outline"]

DIGEST_BYTES = 16


class Change(StrEnum):
    """Kinds of changes."""

    MODEL = "model_changed"
    TOOLS = "tools_changed"
    SYSTEM = "system_changed"
    MESSAGES = "messages_changed"
    OTHER = "unavailable"  # all settings together
    UNKNOWN = "previous_message_not_found"


@dataclass(frozen=True, slots=True)
class Outline:
    """Fingerprint of a request for comparison with later ones.

    Attributes:
        model: the model and the requested speed.
        tools: a hash of the tools.
        system: a hash of the system prompt.
        messages: a hash of the messages.
        length: number of blocks in the messages.
        settings: a hash of all settings that are part of the cache key.
    """

    model: str
    tools: str
    system: str
    messages: str
    length: int
    settings: str

    @classmethod
    def of(cls, model: str, prompt: Prompt, length: int | None = None) -> Self:
        """Return the outline of a request; with a length, of its first blocks of messages only."""
        sections: dict[Section, list[Block]] = {section: [] for section in Section}
        for block in prompt.blocks:
            sections[block.section].append(block)
        messages = sections[Section.MESSAGES][:length]
        return cls(
            model=model,
            tools=_digest(block.content for block in sections[Section.TOOLS]),
            system=_digest(block.content for block in sections[Section.SYSTEM]),
            messages=_digest(block.content for block in messages),
            length=len(messages),
            settings=_digest(prompt.settings.get(section, b"") for section in Section),
        )

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return an outline from the value of `to_json`."""
        return cls(**value)

    def to_json(self) -> dict[str, Any]:
        """Return the outline as a JSON value."""
        return asdict(self)

    def change(self, model: str, prompt: Prompt) -> Change | None:
        """Return the first change of a later request, in the order of the prefix; None if it only adds."""
        now = Outline.of(model, prompt, self.length)
        compared = (
            (self.model, now.model, Change.MODEL),
            (self.tools, now.tools, Change.TOOLS),
            (self.system, now.system, Change.SYSTEM),
            (self.messages, now.messages, Change.MESSAGES),
            (self.settings, now.settings, Change.OTHER),
        )
        return next((change for before, after, change in compared if before != after), None)


def _digest(parts: Iterable[bytes]) -> str:
    found = blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        found.update(len(part).to_bytes(8, "big"))
        found.update(part)
    return found.hexdigest()
