"""JSON values: canonical JSON to Python values, a structural diff, and the hash chain of a transcript.

The hash chain is verifiable with the seed, the scenario and the turn records.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import jiter

from peripety.engine.canonical_json import canonicalize
from peripety.engine.strict_json import MAX_SAFE_INTEGER
from peripety.engine.types import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator


# An unsafe integer has at least this many digits. Few texts contain such a sequence, so the search is cheap.
_LONG_DIGITS = b"0" * len(str(MAX_SAFE_INTEGER))
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)


def loads(text: bytes) -> Any:
    """Parse canonical JSON; a number is an int if it is a safe integer, else a float.

    Canonical form writes large floats as integers. Reading them as ints would change their value in later
    arithmetic.
    """
    if _has_unsafe_integer(text):
        return json.loads(text, parse_int=_parse_integer)
    return jiter.from_json(text)


def _has_unsafe_integer(text: bytes) -> bool:
    """Return True if the text may contain an unsafe integer: a long sequence of digits outside a fraction."""
    digits = text.translate(_DIGITS)
    start = digits.find(_LONG_DIGITS)
    while start >= 0:
        end = start + len(_LONG_DIGITS)
        is_longer = digits[end : end + 1] == b"0"
        is_fraction = text[start - 1 : start] == b"."
        if not is_fraction and (is_longer or int(text[start:end]) > MAX_SAFE_INTEGER):
            return True
        start = digits.find(_LONG_DIGITS, end)
    return False


def _parse_integer(literal: str) -> int | float:
    value = int(literal)
    return value if abs(value) <= MAX_SAFE_INTEGER else float(literal)


_MAX_SHOWN = 60


def find_differences(
    one: Any,
    other: Any,
    path: tuple[str | int, ...] = (),
) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    """Yield the smallest differing parts as (path, one, other), in key order.

    A part that only one value has is `ABSENT` in the other. Lists of different lengths differ as a whole.
    """
    match one, other:
        case dict(), dict():
            for key in sorted(one.keys() | other.keys()):
                yield from find_differences(one.get(key, ABSENT), other.get(key, ABSENT), (*path, key))
        case list(), list() if len(one) == len(other):
            for index, (first, second) in enumerate(zip(one, other, strict=True)):
                yield from find_differences(first, second, (*path, index))
        case _ if not _is_same_json(one, other):
            yield path, one, other


def format_part(value: Any) -> str:
    """Format a part for use in a sentence."""
    if value is ABSENT:
        return "nothing"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"


def _is_same_json(one: Any, other: Any) -> bool:
    if one is ABSENT or other is ABSENT:
        return one is other
    # Python treats True and 1 as equal, JSON does not.
    return canonicalize(one) == canonicalize(other)


def start_hash_chain(seed: int, spec_hash: str) -> str:
    """Return the chain hash before the first turn, in hex: SHA-256 of the canonical `{"seed", "spec_hash"}`.

    Args:
        seed: the seed of the run, 0 … 2^53 - 1.
        spec_hash: `Program.spec_hash`.
    """
    return hashlib.sha256(canonicalize({"seed": seed, "spec_hash": spec_hash})).hexdigest()


def extend_hash_chain(previous: str, record: bytes) -> str:
    """Return the chain hash after a turn, in hex: SHA-256 of the previous hash, as bytes, and the record.

    Args:
        previous: the chain hash before the turn.
        record: the canonical JSON of the turn.
    """
    return hashlib.sha256(bytes.fromhex(previous) + record).hexdigest()
