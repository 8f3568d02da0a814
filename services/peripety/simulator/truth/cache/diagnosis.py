"""Why a prompt cache could not be used again: what has changed since an earlier request of Anthropic's."""

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
    """What has changed."""

    MODEL = "model_changed"
    TOOLS = "tools_changed"
    SYSTEM = "system_changed"
    MESSAGES = "messages_changed"
    OTHER = "unavailable"  # settings, which are not told apart
    UNKNOWN = "previous_message_not_found"


@dataclass(frozen=True, slots=True)
class Outline:
    """As much of a request as is remembered to compare later ones with it.

    Attributes:
        model: the model, and how fast it was asked to be.
        tools: a hash of the tools.
        system: a hash of the system prompt.
        messages: a hash of the messages.
        length: how many blocks the messages have.
        settings: a hash of all settings that prompts are cached by.
    """

    model: str
    tools: str
    system: str
    messages: str
    length: int
    settings: str

    @classmethod
    def of(cls, model: str, prompt: Prompt, length: int | None = None) -> Self:
        """The outline of a request; with a length, of one with only so many blocks of its messages."""
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
        """What `to_json` gave."""
        return cls(**value)

    def to_json(self) -> dict[str, Any]:
        """The outline as a JSON value."""
        return asdict(self)

    def change(self, model: str, prompt: Prompt) -> Change | None:
        """The first thing that a later request has changed, in the prefix's order; None if it only adds."""
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
