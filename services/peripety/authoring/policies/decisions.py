"""Decision of a clause, from its words."""

from __future__ import annotations

import re
from enum import Enum

__all__ = ["Verdict", "is_about_the_rest", "verdict_of"]


class Verdict(Enum):
    """Decision of a clause about its calls."""

    ALLOW = "allow"
    DENY = "deny"
    ESCALATE = "escalate"
    REQUIRE = "require"
    """The condition is required; everything else is denied."""


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b", re.IGNORECASE)


_APPROVAL = r"(?:ask\w*|approv\w*|confirm\w*|permission|consent|escalat\w*|sign-?offs?|review\w*)"
_UNLESS_ASKED = _words(rf"(?:without|unless|until)\b[^,;]*?\b{_APPROVAL}")
_ASK = _words(_APPROVAL, r"(?:a|some) (?:person|human) (?:has to|must|decides)", r"up to a (?:person|human)")
_TWICE = _words(r"(?:not|never|no) (?:be )?(?:forbidden|prohibited|denied|refused|rejected|disallowed)")
_NOTHING = _words("nothing", "nobody", "no one", "no", "neither")
_DENY = _words(
    "never",
    "not",
    r"can(?:not|.t)",
    "mustn.t",
    "don.t",
    r"forbid(?:s|den)?",
    r"prohibit(?:s|ed)?",
    r"den(?:y|ies|ied)",
    r"refuse[sd]?",
    r"reject(?:s|ed)?",
    r"disallow(?:s|ed)?",
    "off[- ]limits",
)
_DENIED_OTHERWISE = _words(
    r"(?:may|can|must|shall|should|do(?:es)?|is|are) (?:never|not)(?: be)?(?: allowed| permitted)?"
)
_ALLOW = _words(r"allow(?:s|ed)?", "may", "can", r"permit(?:s|ted)?", "fine", r"free(?:ly)?")
_MUST = _words("must", "has to", "have to", "shall", "should", "limited to")
_REST = _words(
    r"(?:everything|anything|all|any|every\w*|each)\b[^.;]*?\b(?:else|other)", "otherwise", "by default"
)


def verdict_of(text: str) -> tuple[Verdict | None, str]:
    """Return the decision of a clause, None if it is ambiguous, and the remaining words.

    Args:
        text: the clause without its literals.
    """
    if _TWICE.search(text):
        return None, text
    text, unless = _UNLESS_ASKED.subn(" ", text)
    text, asks = _ASK.subn(" ", text)
    text, denials = _DENIED_OTHERWISE.subn(" ", text)
    text, others = _DENY.subn(" ", text)
    nothing = _NOTHING.search(text) is not None
    denies = bool(denials or others or nothing)
    allows = _ALLOW.search(text) is not None and not nothing
    match bool(unless), bool(asks), denies, allows:
        case (True, _, True, _) | (False, True, False, _):
            return Verdict.ESCALATE, text
        case (True, False, False, True) | (False, False, False, True):
            return Verdict.ALLOW, text
        case (False, False, True, False):
            return Verdict.DENY, text
        case (False, False, False, False) if _MUST.search(text):
            return Verdict.REQUIRE, text
    return None, text


def is_about_the_rest(text: str) -> bool:
    """Return True if the clause is about all calls that no other clause covers."""
    return _REST.search(text) is not None
