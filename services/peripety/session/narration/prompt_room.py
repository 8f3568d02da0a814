"""Room of the narrator's prompt: how many bytes each part may take, by the context window of the model.

A large window holds a long memory, and a small one is filled soon. The room follows from the model's
catalogue entry, or from two settings: `PERIPETY_PROFILE` selects the profile, and
`PERIPETY_NARRATOR_ROOM_BYTES` the size.
"""

from __future__ import annotations

from dataclasses import dataclass

from peripety.core.config import NarratorProfile

# Four bytes a token, and a sixth of the window: the rest is for instructions, tools, thoughts and the answer.
_BYTES_PER_TOKEN = 0.64
_MAX_BYTES = 32_000
_UNKNOWN_WINDOW = 4_096
_ANSWER_TOKENS = 1_024
_FULL_FROM_BYTES = 10_000
"""A window of 16k tokens."""


@dataclass(frozen=True, slots=True)
class PromptRoom:
    """Bytes and limits of the parts of a narrator's prompt.

    Attributes:
        facts: bytes of the facts of a turn, this one or an earlier one.
        story: bytes of the place, the statements and the promises.
        view: bytes of the view of the state.
        legal_actions: bytes of the legal actions; None for no limit.
        whole_turns: bytes of the earlier turns that are given whole; a third of it remains after a fold.
        summary: bytes of the summary of all turns before those.
        established: bytes of the facts that the narrator established in turns before the summary.
        kept_turns: the number of newest turns that are always given whole.
        narration_characters: length of a narration in an earlier turn.
        answer_tokens: the most tokens of an answer, without the thoughts of a model that reasons.
    """

    facts: int
    story: int
    view: int
    legal_actions: int | None
    whole_turns: int
    summary: int
    established: int
    kept_turns: int
    narration_characters: int
    answer_tokens: int = _ANSWER_TOKENS

    @property
    def is_small(self) -> bool:
        """True for the profile of small models."""
        return self.legal_actions is not None

    @classmethod
    def for_window(
        cls,
        context_tokens: int,
        profile: NarratorProfile = NarratorProfile.BY_MODEL,
        max_bytes: int | None = None,
    ) -> PromptRoom:
        """Return the room for a model.

        Args:
            context_tokens: the context window of the model; 0 if unknown.
            profile: the profile to use.
            max_bytes: bytes of all parts together; None to derive them from the window.
        """
        room = max_bytes or min(_MAX_BYTES, int((context_tokens or _UNKNOWN_WINDOW) * _BYTES_PER_TOKEN))
        small = profile is NarratorProfile.LOCAL_LITE or (
            profile is NarratorProfile.BY_MODEL and room < _FULL_FROM_BYTES
        )
        if small:
            # The order of dropping: the summary, older turns, the view, legal actions, facts.
            return cls(
                facts=int(room * 0.25),
                story=int(room * 0.1),
                view=int(room * 0.12),
                legal_actions=int(room * 0.1),
                whole_turns=int(room * 0.33),
                summary=int(room * 0.15),
                established=int(room * 0.15),
                kept_turns=1,
                narration_characters=max(160, int(room * 0.12)),
            )
        return cls(
            facts=min(2_000, int(room * 0.15)),
            story=min(2_000, int(room * 0.1)),
            view=int(room * 0.12),
            legal_actions=None,
            whole_turns=int(room * 0.47),
            summary=int(room * 0.22),
            established=int(room * 0.3),
            kept_turns=3,
            narration_characters=1_500,
        )
