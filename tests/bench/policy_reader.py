"""Policies read without a model: unsafe permissions, needless denials and right decisions.

`make bench-policy-reader`. The development part lists each sentence that is decided in another way than
expected; the other parts print totals only. The fresh part was written before its author saw the grammar.
With TAU2_RETAIL=FOLDER, the policy in the folder is read, too: `policy.md`, `tools.json` and
`expected-actions.json` of tau2-bench retail.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.author.policy_author.rules import build_rules
from peripety.author.policy_author.sentences import split_sentences
from peripety.engine import ToolRequest
from support.policy_sentences import decide_calls, load_cases, read_case, score_cases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST_NEEDLESS = 0.05
_LEAST_RIGHT = 0.85
_TYPES = {"str": "string", "list": "array", "int": "integer", "float": "number", "bool": "boolean"}


def main() -> int:
    """Print the figures; return 1 if a call is allowed against its text."""
    unsafe = 0
    for half in ("development", "sealed", "fresh"):
        start = time.process_time()
        read = [read_case(one) for one in load_cases(half)]
        seconds = time.process_time() - start
        score = score_cases(read)
        unsafe += score["unsafe"]
        if half == "development":
            for one in read:
                if one.unsafe or one.wrong:
                    said = one.case.text.replace("\n", " ")
                    _write(f"  {said}\n    unsafe {_list(one.unsafe)}; decided otherwise {_list(one.wrong)}")
        _print_score(half, score, seconds)
    folder = os.environ.get("TAU2_RETAIL")
    if folder:
        _print_tau2(Path(folder))
    else:
        _write("tau2-bench retail: NOT MEASURED; set TAU2_RETAIL to the folder with its policy.md")
    return 1 if unsafe else 0


def _print_score(half: str, score: Counter[str], seconds: float) -> None:
    _write(
        f"{half}: {score['followed']} of {score['sentences']} sentences followed to the last word,"
        f" {seconds / score['sentences'] * 1000:.0f} ms each"
    )
    _write(f"  unsafe: {score['unsafe']} of {score['calls']} calls (must be 0)")
    _write(
        f"  needlessly stopped: {_share(score['needless_followed'], score['expected_allow_followed'])} of the"
        f" calls that followed sentences allow (at most {_MOST_NEEDLESS:.0%});"
        f" {_share(score['needless'], score['expected_allow'])} of those that any sentence allows"
    )
    _write(
        f"  right: {_share(score['right'], score['listed'])} of the listed calls"
        f" (at least {_LEAST_RIGHT:.0%})"
    )


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole if whole else 0:.1%})"


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"


# ---- tau2-bench, retail


def _print_tau2(folder: Path) -> None:
    text = (folder / "policy.md").read_text(encoding="utf-8")
    described = json.loads((folder / "tools.json").read_text(encoding="utf-8"))
    tools = [_describe_tool(name, arguments) for name, arguments in described.items()]
    tasks = json.loads((folder / "expected-actions.json").read_text(encoding="utf-8"))
    calls = [
        ToolRequest("retail", one["tool"], one["arguments"], ()) for task in tasks for one in task["actions"]
    ]
    derived = build_rules(text, tools)
    sentences = split_sentences(text)
    named = {one.sentence for one in derived.unfollowed}
    _write(
        f"tau2-bench retail: {len(sentences) - len(named)} of {len(sentences)} sentences followed,"
        f" the others are named; {len(calls)} expected calls"
    )
    for title, is_open in (("alone", False), ("before a rule that allows all", True)):
        counts = Counter(decide_calls(derived, tools, calls, is_open))
        _write(
            f"  the text {title}: "
            + ", ".join(f"{counts[one]} {one}" for one in ("allow", "escalate", "deny"))
        )


def _describe_tool(name: str, arguments: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    properties = {argument: {"type": _TYPES[kinds[0]]} for argument, kinds in arguments.items()}
    schema = {"type": "object", "properties": properties}
    return {"server_name": "retail", "tool_name": name, "input_schema": schema}


if __name__ == "__main__":
    sys.exit(main())
