"""Seed corpora of coverage-guided fuzzers: golden vectors, random scenarios, and the words of the language.

`python -m fuzz.seeds DIRECTORY` writes a corpus for each target, and `words.dict`.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.jsonlogic_operators import OPERATORS
from support.engine.seeded_specs import SHAPES, random_spec
from support.engine.vectors import VECTORS

if TYPE_CHECKING:
    from collections.abc import Iterator


WORDS = [
    *OPERATORS,
    *(
        "set",
        "inc",
        "dec",
        "patch",
        "push",
        "pop",
        "addlog",
        "schedule",
        "integer",
        "number",
        "string",
        "boolean",
    ),
    *("state", "params", "derives", "turn", "entities", "current", "accumulator", "state.a", "state.list[0]"),
    *("actions", "random_events", "loss_conditions", "win_conditions", "negativity_budget", "decay_per_turn"),
    *(
        "preconditions",
        "effects",
        "when",
        "weight",
        "duration",
        "clock",
        "horizon",
        "id",
        "op",
        "path",
        "value",
    ),
    *(
        "tools",
        "rules",
        "server_name",
        "tool_name",
        "argument_roles",
        "arguments",
        "roles",
        "role",
        "lists",
        "kind",
    ),
    *(
        "among",
        "quantifier",
        "not_all",
        "identifier",
        "domain",
        "email",
        "read_only",
        "then",
        "allow",
        "deny",
    ),
    *("after", "at", "message", "minimum", "maximum", "enum", "maxLength", "P1D", "12h", "7d/12h"),
]


def main(directory: Path) -> None:
    """Write the corpora."""
    for target, document in corpora():
        folder = directory / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha256(document).hexdigest()[:16]).write_bytes(document)
    lines = [f"{json.dumps(json.dumps(word))}\n" for word in WORDS]
    (directory / "words.dict").write_text("".join(lines), "utf-8")


def corpora() -> Iterator[tuple[str, bytes]]:
    """Each target with one of its seeds."""
    for name in ("border", "logic", "play"):
        for case in json.loads((VECTORS / f"{name}.json").read_text("utf-8"))["cases"]:
            yield from _seeds(name, case)
    for shape in SHAPES:
        for seed in range(8):
            document = json.dumps(random_spec(seed, shape=shape)).encode("utf-8")
            if len(document) < 1 << 14:
                yield "compile", document
    for case in json.loads((VECTORS / "policies.json").read_text("utf-8"))["cases"]:
        lines = [case["policy"], *case["requests"]]
        yield "policies", "\n".join(map(json.dumps, lines)).encode("utf-8")
    for path in ("state.a.b[2].c", 'state["odd key"]', "state.a.2.b", "P1DT12H", "7d/12h"):
        yield "paths", path.encode("utf-8")
    for size in range(64, 2048, 64):  # decisions, of which the target makes scenarios
        yield "apply", Random(size).randbytes(size)


def _seeds(name: str, case: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    if name == "border" and "text" in case and len(case["text"]) < 1 << 12:
        yield "strict_json", case["text"].encode("utf-8")
    elif name == "logic":
        yield "jsonlogic", f"{case['logic']}\n{case['data']}".encode()
    elif name == "play":
        yield "compile", json.dumps(case["spec"]).encode("utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
