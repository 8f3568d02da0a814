"""Scenarios with canaries in every private place, and eyes that know one however it is written."""

from __future__ import annotations

import base64
import codecs
import re
from typing import TYPE_CHECKING, Any

from support.random_specs import random_spec
from support.specs import action

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from support.specs import Json

__all__ = [
    "ENTITIES",
    "LABELS",
    "OWNERS",
    "PLAYERS",
    "VIEWERS",
    "WAYS",
    "assert_clean",
    "canary",
    "number",
    "secret_state",
    "secretive_spec",
    "writes",
]

PLAYERS = ("p", "q")
VIEWERS = (None, *PLAYERS)
ENTITIES: list[Json] = [{"id": "p", "playable": True}, {"id": "q", "playable": True}, {"id": "r"}]
LABELS: list[Json] = [
    {"path": "state.sealed", "to": "hidden"},
    {"path": "state.sealed.sign", "to": "public"},
    {"path": "state.shared", "to": ["p"]},
    {"path": "state.ranks[1]", "to": ["q"]},
]
OWNERS = {
    "state.private.p": "p",
    "state.private.q": "q",
    "state.private.r": "r",
    "state.hidden": "nobody",
    "state.sealed": "nobody",
    "state.shared": "p",
}
# Ten digits that mean nothing backwards, or beside others; what rules add comes behind them.
_NUMBERS = {"p": 9081726354, "q": 6172839405, "r": 5926374108, "nobody": 8394057261}
_BETWEEN = re.compile(r"[\W_]+")


def canary(owner: str, number: int) -> str:
    """A text that only its owner may see."""
    return f"canary-{owner}-{number}-"


def number(owner: str) -> int:
    """A number that only its owner may see, and what little is added to it."""
    return _NUMBERS[owner] * 100


def secret_state() -> Json:
    """What stands in the private places at the start."""
    return {
        "private": {
            name: {"x": canary(name, 0), "n": number(name), "list": [canary(name, 1)]}
            for name in ("p", "q", "r")
        },
        "hidden": {"x": canary("nobody", 0), "n": number("nobody"), "list": [canary("nobody", 1)]},
        "sealed": {"x": canary("nobody", 2), "n": number("nobody"), "list": [], "sign": "seen by all"},
        "shared": {"x": canary("p", 2), "n": number("p"), "list": []},
        "ranks": ["seen by all", canary("q", 2)],
    }


def writes(path: str, fresh: str) -> list[Json]:
    """What rules can do to a secret place, and to what holds it; some of it fails when it is applied."""
    put = {"op": "set", "path": f"{path}.x", "value": fresh}
    return [
        put,
        {"op": "set", "path": f"{path}.made", "value": {"deep": [fresh]}},
        {"op": "patch", "path": path, "value": {"x": fresh, "more": [fresh]}},
        {"op": "push", "path": f"{path}.list", "value": fresh},
        {"op": "pop", "path": f"{path}.list"},
        {"op": "inc", "path": f"{path}.n", "value": 1},
        {"op": "set", "path": "state.private", "value": secret_state()["private"]},
        {"op": "patch", "path": "state.private", "value": {"q": {"x": canary("q", 5), "list": []}}},
        {"op": "patch", "path": "state", "value": {"hidden": {"x": canary("nobody", 6), "list": []}}},
        {"op": "schedule", "id": "s", "after": 1, "effects": [put]},
    ]


def secretive_spec(random: Random) -> Json:
    """A random scenario with secrets in it, and rules that read, write and fail on them."""
    spec = random_spec(random)
    spec |= {"state": spec["state"] | secret_state(), "entities": ENTITIES, "visibility": LABELS}
    spec.pop("narrator_scope", None)
    places = sorted(OWNERS)
    for place, rule in enumerate([*spec["actions"], *spec["random_events"]]):
        if random.random() < 0.5:
            path = random.choice(places)
            rule["derives"] = {f"secret{place}": {"cat": [{"var": f"{path}.x"}, "!"]}}
            rule["effects"] = [
                random.choice(writes(where, canary(OWNERS[where], random.randint(10, 99))))
                for where in random.choices(places, k=random.randint(1, 3))
            ]
            rule["effects"].append({"op": "set", "path": f"{path}.copy", "value": f"secret{place}"})
        if random.random() < 0.2:
            condition = {">": [{"+": [{"var": f"{random.choice(places)}.x"}]}, 0]}
            rule["preconditions" if "preconditions" in rule else "when"] = condition
    for place in range(3):
        where = random.choice(places)
        fresh = canary(OWNERS[where], random.randint(10, 99))
        spec["actions"].append(action(f"stir{place}", [random.choice(writes(where, fresh))]))
    return spec


# --- ways to write a text ---


def _codes(pattern: str, separator: str = "") -> Callable[[str], str]:
    return lambda text: separator.join(pattern.format(ord(character)) for character in text)


WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "inside a word": lambda text: f"xx{text}xx",
    "upper case": str.upper,
    "title case": str.title,
    "spaced out": " ".join,
    "hyphenated": "-".join,
    "dotted": ".".join,
    "underscored": "_".join,
    "one letter a line": "\n".join,
    "with invisible joints": "\u200b".join,
    "with soft hyphens": "\u00ad".join,
    "in markup": lambda text: f"**{text[:4]}**{text[4:]}",
    "in quotes": "'\"'".join,
    "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) for c in text),
    "with accents": "\u0301".join,
    "backwards": lambda text: text[::-1],
    "backwards and spaced out": lambda text: " ".join(text[::-1]),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "hex": lambda text: text.encode().hex(),
    "hex in upper case": lambda text: text.encode().hex().upper(),
    "hex in pairs": lambda text: text.encode().hex(" "),
    "hex with colons": lambda text: text.encode().hex(":"),
    "hex escapes": _codes("\\x{:02x}"),
    "hex literals": _codes("0x{:02x}", ", "),
    "unicode escapes": _codes("\\u{:04x}"),
    "code points": _codes("U+{:04X}", " "),
    "percent encoded": _codes("%{:02X}"),
    "decimal codes": _codes("{}", " "),
    "entities": _codes("&#{};"),
    "hex entities": _codes("&#x{:x};"),
    "bits": _codes("{:08b}", " "),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 behind one letter": lambda text: base64.b64encode(f"x{text}".encode()).decode(),
    "base64 behind two letters": lambda text: base64.b64encode(f"xx{text}yyy".encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 in lines": lambda text: "\n".join(base64.b64encode(text.encode()).decode()),
}


# --- eyes ---


def _plain(text: str) -> str:
    return _BETWEEN.sub("", text.casefold())


def _forms(owner: str) -> tuple[str, ...]:
    """How what belongs to an owner begins, in every way to write it, cased and spaced like nothing."""
    texts = [canary(owner, 0).removesuffix("0-"), str(_NUMBERS[owner])]
    forms = {_plain(way(text)) for text in texts for name, way in WAYS.items() if "base" not in name}
    # Where a text ends in the middle of what its encoding takes at once, what follows has its part there.
    forms |= {_plain(base64.b32encode(text.encode()).decode()[: len(text) * 8 // 5]) for text in texts}
    for before in range(3):
        for text in texts:
            encoded = base64.b64encode((b"\0" * before) + text.encode()).decode().rstrip("=")
            forms.add(_plain(encoded[-(-before * 8 // 6) : (before + len(text)) * 8 // 6]))
    return tuple(forms - {"", *(_plain(f"xx{text}xx") for text in texts)})


_FORMS = {owner: _forms(owner) for owner in _NUMBERS}


def assert_clean(viewer: str | None, seen: Any) -> None:
    """Nothing of what others own is in what a viewer gets, however it is written."""
    raw = seen.decode(errors="replace") if isinstance(seen, bytes) else str(seen)
    text = _plain(raw)
    for owner, forms in _FORMS.items():
        if owner != viewer:
            for form in forms:
                assert form not in text, (viewer, owner, form, raw)
