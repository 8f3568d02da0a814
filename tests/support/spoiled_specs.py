"""Scenarios with something changed: what a careless author, or a hostile one, may do to a document."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from support.random_logic import random_logic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

__all__ = ["spoiled", "spoiled_bytes"]

# A container, and the key or index of something in it.
Place = tuple[Any, Any]

_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    0.5,
    1e9,
    1e300,
    -1e300,
    2**53 - 1,
    "",
    "x",
    "state",
    "state.n0",
    "a0",
    "e0",
    "turn",
    "1h",
    "0h",
    "P1D",
    "set",
    "inc",
    "pop",
    "schedule",
    "{{x}}",
    "${x}",
    [],
    [1],
    {},
    {"a": 1},
    {"+": [1, 2]},
    {"var": "state.n0"},
    {"missing": [""]},
    "é" * 70,
    "x" * 300,
    "x" * 11_000,
)
_KEYS = (
    "id",
    "name",
    "op",
    "path",
    "value",
    "effects",
    "at",
    "after",
    "when",
    "derives",
    "params",
    "private",
    "enum",
    "minimum",
    "maximum",
    "maxLength",
    "duration",
    "message",
    "description",
    "max_fail_rate",
    "horizon",
    "zz",
    "",
    "__proto__",
    "constructor",
    "var",
    "+",
    "map",
    "é",
    "\ufb33",
    "😀",
    "x" * 300,
)
_PATHS = (
    "state",
    "state.n0",
    "state.n1",
    "state.zz",
    "state.zz.y",
    "state.items[0]",
    "state.items[7]",
    "state.items[7].x",
    "state.items",
    "state.words.0",
    "state.tree",
    "state.tree.n",
    'state.tree["odd key"]',
    'state["n0"]',
    "state.n0.x",
    "params.m",
    "params.zz",
    "params[0]",
    "derives.d0",
    "derives.zz",
    "entities.0",
    "turn",
    "state.",
    "state[",
    "",
    "x.y",
    "state.made",
    "state.tree.made",
    "state.__proto__",
    'state["prototype"]',
    "state.items.007",
    "[0]",
    'state["\\u0061"]',
    "state." + "x" * 257,
    "state" + ".x" * 260,
    "state.items[12345678901]",
    "state.rows[0].n",
)
_TYPOS = (
    "+",
    "-",
    "<",
    "==",
    "and",
    "if",
    "var",
    "missing",
    "missing_some",
    "map",
    "reduce",
    "none",
    "substr",
    "xor",
)


def spoiled(random: Random, spec: Any) -> Any:
    """A copy with a few changes, which need not do harm."""
    changed = copy.deepcopy(spec)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        places = list(_places(changed))
        random.choice(_CHANGES)(random, random.choice(places))
    return changed


def spoiled_bytes(random: Random, document: bytes) -> bytes:
    """A document with a byte or a stretch of it changed, or spelled in another way."""
    at, end = sorted(random.randrange(len(document) + 1) for _ in range(2))
    stray = random.choice((b" ", b"\n\t", b"0", b",", b'"', b"\xed\xa0\x80", bytes([random.randrange(256)])))
    number = random.choice((b"1.0", b"1e0", b"10e-1", b"01", b"-0", b"1.5", b"1e400"))
    changed: tuple[Callable[[], bytes], ...] = (
        lambda: document[:at],
        lambda: document[:at] + document[at + 1 :],
        lambda: document[:at] + stray + document[at + 1 :],
        lambda: document[:at] + stray + document[at:],
        lambda: document[:at] + document[at : min(end, at + 40)] * 2 + document[end:],
        lambda: document.replace(b":", b" : ").replace(b'"id"', b'"\\u0069d"'),
        lambda: document.replace(b"1", number, 3),
        lambda: json.dumps(json.loads(document), indent=1, sort_keys=True).encode(),
        lambda: document + stray,
    )
    return random.choice(changed)()


def _places(value: Any) -> Iterator[Place]:
    pending = [value]
    while pending:
        container = pending.pop()
        for key in container if isinstance(container, dict) else range(len(container)):
            yield container, key
            if isinstance(container[key], dict | list):
                pending.append(container[key])


def _remove(_random: Random, place: Place) -> None:
    container, key = place
    del container[key]


def _rename(random: Random, place: Place) -> None:
    container, key = place
    if isinstance(container, dict):
        container[random.choice((*_KEYS, *_TYPOS, f"{key}x"))] = container.pop(key)


def _replace(random: Random, place: Place) -> None:
    container, key = place
    container[key] = copy.deepcopy(random.choice(_VALUES))


def _vary(random: Random, place: Place) -> None:
    """Another value of the same kind."""
    container, key = place
    value = container[key]
    if isinstance(value, bool) or value is None:
        container[key] = not value
    elif isinstance(value, int | float):
        container[key] = random.choice(
            (-value, value + 1, value * 1000, value / 7, 0, 1, 0.3, 0.31, 1_000_001),
        )
    elif isinstance(value, str):
        container[key] = random.choice(_PATHS)
    elif isinstance(value, list):
        value.extend(copy.deepcopy(value[:1]) * random.choice((1, 2, 300)))
    else:
        value[random.choice(_KEYS)] = copy.deepcopy(random.choice(_VALUES))


def _think(random: Random, place: Place) -> None:
    container, key = place
    container[key] = random_logic(random, 3)


def _nest(random: Random, place: Place) -> None:
    container, key = place
    for _ in range(random.choice((1, 4, 30, 60, 70))):
        container[key] = random.choice((lambda v: [v], lambda v: {"!": [v]}, lambda v: {"a": v}))(
            container[key],
        )


def _copy(random: Random, place: Place) -> None:
    """Something from elsewhere in the same container."""
    container, key = place
    others = list(container) if isinstance(container, dict) else range(len(container))
    container[key] = copy.deepcopy(container[random.choice(list(others))])


_CHANGES: tuple[Callable[[Random, Place], None], ...] = (
    _remove,
    _rename,
    _replace,
    _vary,
    _vary,
    _think,
    _nest,
    _copy,
)
