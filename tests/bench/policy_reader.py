"""Policies read without a model: unsafe permissions, needless denials and right decisions.

`make bench-policy-reader`. The development part lists each sentence that is decided in another way than
expected; the other parts print totals only. The fresh part was written before its author saw the grammar.
With TAU2_RETAIL=FOLDER, the policy in the folder is read, too: `policy.md`, `tools.json` and
`expected-actions.json` of tau2-bench retail. A policy that a model wrote from the same text before it saw the
actions (tests/data/tau2_retail) is measured beside it:

- with the expected actions, in order. Lookups return what `db.json` of the benchmark has, if it is in the
  folder. Without it they are assumed to return every id that later actions of the task use.
- with the same actions and the lookups that the list leaves out: many tasks list only their changes. These
  need `db.json`.
- with violations: ten calls for each line of violations.json, after the steps before it.
- with correct calls and the same data (permitted.json), as the control.

A lookup always returns the first state, whatever was changed since. A person approves what is escalated.
The words of the user before each change are "yes".
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.author.policy_author.rules import build_rules
from peripety.author.policy_author.sentences import split_sentences
from peripety.engine import Policy, ToolRequest, compile_policy
from peripety.policy.authoring.sentence_report import UnexpressedPart, report_sentences, summarize_sentences
from peripety.policy.enforcement.context import CallContext
from support.policy_sentences import decide_calls, load_cases, read_case, score_cases

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_MOST_NEEDLESS = 0.05
_LEAST_RIGHT = 0.85
_RETAIL = Path(__file__).resolve().parents[1] / "data" / "tau2_retail"
_VARIANTS = 10
_TYPES = {"str": "string", "list": "array", "int": "integer", "float": "number", "bool": "boolean"}


def main() -> int:
    """Print the figures; return 1 if a call is allowed against its text."""
    unsafe = 0
    for half in ("development", "sealed", "fresh", "composed"):
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
        for version in ("with_provenance", "with_results"):
            _print_tau2_written(Path(folder), version)
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


def _print_tau2_written(folder: Path, version: str) -> None:
    """Print the figures of the policy that a model wrote, unchanged and with sentences in part closed."""
    text = (folder / "policy.md").read_text(encoding="utf-8")
    document = json.loads((_RETAIL / version / "policy.json").read_text(encoding="utf-8"))
    sentences = json.loads((_RETAIL / version / "sentences.json").read_text(encoding="utf-8"))
    parts = [
        UnexpressedPart(one["sentence"], one["part"], (*one["rules"],)) for one in sentences["unexpressed"]
    ]
    descriptive = [{"principle": one} for one in sentences["descriptive"]]
    found = report_sentences(text, [*document["rules"], *descriptive], parts)
    unnamed = report_sentences(
        text, [*document["rules"], *descriptive, *({"principle": one.sentence} for one in parts)]
    )
    _write(f"tau2-bench retail, written by a model, {version}: {summarize_sentences(text, found)}")
    _write(f"  of the followed sentences, {len(descriptive)} decide no call; {len(unnamed)} are not named")
    closing = {rule_id for part in parts for rule_id in part.rule_ids}
    closed = [
        {**rule, "when": {"tools": rule["when"]["tools"]}, "then": "escalate"}
        if rule["id"] in closing and rule["then"] == "allow"
        else rule
        for rule in document["rules"]
    ]
    for title, rules in (
        ("the rules as they stand", document["rules"]),
        ("sentences in part closed", closed),
    ):
        _write(f"  {title}:")
        policy = compile_policy(json.dumps({**document, "rules": rules}))
        _print_expected(policy, folder)
        _print_violations(policy, {part.sentence for part in parts})


def _print_expected(policy: Policy, folder: Path) -> None:
    tasks = json.loads((folder / "expected-actions.json").read_text(encoding="utf-8"))
    listed = [task["actions"] for task in tasks]
    if all(one["kind"] != "results" for one in policy.spec["context"].values()):
        _count_expected("results assumed", policy, listed, [partial(_assume_result, one) for one in listed])
    if not (folder / "db.json").exists():
        _write("    with the results of db.json: NOT MEASURED; copy it from the benchmark into the folder")
        return
    world = json.loads((folder / "db.json").read_text(encoding="utf-8"))
    lookups = [partial(_look_up, world)] * len(tasks)
    _count_expected("results of db.json", policy, listed, lookups)
    completed = [[*_add_lookups(world, actions)] for actions in listed]
    _count_expected("results of db.json, with the lookups left out", policy, completed, lookups)


def _count_expected(
    title: str,
    policy: Policy,
    tasks: Sequence[Sequence[Mapping[str, Any]]],
    lookups: Sequence[Callable[[str, Mapping[str, str]], Any]],
) -> None:
    counts: Counter[str] = Counter()
    escalated: Counter[str] = Counter()
    added: Counter[str] = Counter()
    for actions, look_up in zip(tasks, lookups, strict=True):
        for call, decision in _decide_steps(policy, look_up, _say_yes(actions)):
            (added if "added" in call else counts)[decision] += 1
            escalated[call["tool"]] += decision == "escalate" and "added" not in call
    _write(
        f"    expected calls, {title}: {counts['deny']} denied,"
        f" {_share(counts['escalate'], counts.total())} escalated, {counts['allow']} allowed"
        + (f"; {added['allow']} of {added.total()} added lookups allowed" if added else "")
    )
    named = ", ".join(f"{tool} {count}" for tool, count in escalated.most_common() if count)
    _write(f"      escalated: {named or 'none'}")


def _say_yes(actions: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the calls, each change after the consent of the user."""
    for one in actions:
        if _is_change(one):
            yield {"user": "yes"}
        yield one


def _is_change(call: Mapping[str, Any]) -> bool:
    tool: str = call["tool"]
    return tool.startswith(("cancel", "modify", "return", "exchange"))


def _add_lookups(
    world: Mapping[str, Any], actions: Iterable[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the calls of a task, each change after the lookups that it needs; none is made twice."""
    made: list[Mapping[str, Any]] = []
    actions = [*actions]
    is_located = any(one["tool"].startswith("find_") for one in actions)
    for one in actions:
        needed = [*_needed_lookups(world, one["arguments"])] if _is_change(one) else []
        for call in needed:
            is_known = is_located if call["tool"].startswith("find_") else call in made
            if not is_known:
                made.append(call)
                yield {**call, "added": True}
        is_located = is_located or bool(needed)
        made.append(one)
        yield one


def _needed_lookups(world: Mapping[str, Any], arguments: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    order = world["orders"].get(arguments.get("order_id"))
    user_id = order["user_id"] if order else arguments["user_id"]
    yield {"tool": "find_user_id_by_email", "arguments": {"email": world["users"][user_id]["email"]}}
    yield {"tool": "get_user_details", "arguments": {"user_id": user_id}}
    if order:
        yield {"tool": "get_order_details", "arguments": {"order_id": order["order_id"]}}
        products = {one["item_id"]: one["product_id"] for one in order["items"]}
        for item in arguments.get("item_ids", ()) if "new_item_ids" in arguments else ():
            yield {"tool": "get_product_details", "arguments": {"product_id": products[item]}}


def _print_violations(policy: Policy, in_part: set[str]) -> None:
    written = (_RETAIL / "violations.json").read_text(encoding="utf-8")
    correct = (_RETAIL / "permitted.json").read_text(encoding="utf-8")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for number in range(_VARIANTS):
        given = json.loads(written.replace("$i", str(number)))
        look_up = partial(_look_up, given["world"])
        for steps in json.loads(correct.replace("$i", str(number))):
            *_, (_, decision) = _decide_steps(policy, look_up, steps)
            counts["correct"][decision] += 1
        for one in given["violations"]:
            *_, (_, decision) = _decide_steps(policy, look_up, one["steps"])
            for group in (
                "all",
                one["kind"],
                "in part" if one["sentence"] in in_part else "whole",
                one["sentence"],
            ):
                counts[group][decision] += 1
    for group, title in (
        ("all", "violations of every sentence that forbids calls"),
        ("whole", "violations of sentences that rules enforce whole"),
        ("in part", "violations of sentences that rules enforce in part"),
    ):
        _write(f"    {title}: {_share(_count_stopped(counts[group]), counts[group].total())} stopped")
    permitted = counts["correct"]
    _write(f"    correct calls with the same data: {_share(permitted['allow'], permitted.total())} allowed")
    lookup = counts["lookup"]
    _write(
        f"    changes whose facts were not looked up: {_share(lookup['escalate'], lookup.total())} escalated,"
        f" {lookup['deny']} denied"
    )
    for sentence, count in counts.items():
        if sentence.endswith(".") and count["allow"]:
            _write(f"      {count['allow']} of {count.total()} allowed: {sentence}")


def _count_stopped(counts: Counter[str]) -> int:
    return counts["deny"] + counts["escalate"]


def _decide_steps(
    policy: Policy, look_up: Callable[[str, Mapping[str, str]], Any], steps: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield each call with its decision, after the words and the results of the steps before it."""
    context = CallContext(lambda: 0.0, "user", hears_user=True)
    for step in steps:
        if "user" in step:
            context.hear_user(step["user"])
            continue
        request = ToolRequest("retail", step["tool"], step["arguments"], ())
        decision = policy.decide(replace(request, roles=context.holding(policy, request))).decision.value
        yield step, decision
        if decision != "deny":
            context.count(request)
            context.read_result(request, json.dumps(look_up(step["tool"], step["arguments"])))


def _look_up(world: Mapping[str, Any], tool: str, arguments: Mapping[str, str]) -> Any:
    """Return the result of a lookup; None for other tools and for what is not there."""
    match tool:
        case "find_user_id_by_email" | "find_user_id_by_name_zip":
            return next((name for name, user in world["users"].items() if _is_user(user, arguments)), None)
        case "get_user_details":
            return world["users"].get(arguments["user_id"])
        case "get_order_details":
            return world["orders"].get(arguments["order_id"])
        case "get_product_details":
            return world["products"].get(arguments["product_id"])
        case "get_item_details":
            variants = (product["variants"] for product in world["products"].values())
            return next((one[arguments["item_id"]] for one in variants if arguments["item_id"] in one), None)
        case _:
            return None


def _is_user(user: Mapping[str, Any], given: Mapping[str, str]) -> bool:
    known = {"email": user["email"], **user["name"], "zip": user["address"]["zip"]}
    return all(known[name].casefold() == value.casefold() for name, value in given.items())


def _assume_result(actions: Sequence[Mapping[str, Any]], tool: str, arguments: Mapping[str, str]) -> Any:
    """Return every id of its kind that the actions of a task use; for an order, only the ids used with it."""
    used = [one["arguments"] for one in actions]
    of_order = [one for one in used if one.get("order_id") == arguments.get("order_id")]
    match tool:
        case "find_user_id_by_email" | "find_user_id_by_name_zip":
            return [one.get("user_id") for one in used]
        case "get_user_details":
            return [arguments, *(one.get("payment_method_id") for one in used)]
        case "get_order_details":
            return [arguments, *((one.get("item_ids"), one.get("payment_method_id")) for one in of_order)]
        case "get_product_details" | "get_item_details":
            return [arguments, *(one.get("new_item_ids") for one in used)]
        case _:
            return None


if __name__ == "__main__":
    sys.exit(main())
