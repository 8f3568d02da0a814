"""Random texts that are almost paths, hosts, URLs and addresses: pieces of all of them in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

__all__ = ["PIECES", "random_text"]

PIECES = {
    "path": ("/", "/", "..", ".", "a", "b", "ab", "A", "~", "\0", " ", "é", "...", "%2e", "\\", "/a/b"),
    "host": (
        "a",
        "b",
        "a.b",
        ".",
        "-",
        "_",
        "A",
        "0",
        "1",
        "01",
        "0x",
        "0x1f",
        "255",
        "256",
        ":80",
        ":",
        "é",
    ),
    "url": (
        "://",
        "https://",
        "x",
        "@",
        "/",
        "?",
        "#",
        ":",
        "a.b",
        "[",
        "]",
        "::",
        "::1",
        "1.2.3.4",
        "\\",
        " ",
    ),
    "bracketed": ("1", "::", ":", "ffff", "0", "1.2.3.4", "00f", "12345", "1.2.3", "a", "g", "%1"),
    "address": ("a", "B", "+", "@", "a.b", ".", "*", "é", "\u212a", '"', " ", "[1.2.3.4]", "x" * 64),
}


def random_text(random: Random) -> str:
    """A text of a few pieces."""
    pieces = PIECES[random.choice((*PIECES,))]
    text = "".join(random.choices(pieces, k=random.choice((1, 2, 3, 4, 6, 9))))
    kind = random.random()
    if kind < 0.15:
        return f"[{text}]{random.choice(('', '.', ':1', ':123456'))}"
    if kind < 0.25:
        return "/" + text
    if kind < 0.35:
        return f"{random.choice(('https://', 'x+y://u:v@', '1://'))}{text}"
    if kind < 0.42:
        return f"a@{text}"
    if kind < 0.45:
        return ".".join([text[:63] or "a"] * random.choice((20, 60, 127, 128)))
    return text
