"""`peripety policy suggest`: a written policy from the calls of a decision log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from peripety.cli.output import EXIT_FAILED, one_line, person_console, result_console, save_file, write_json
from peripety.cli.policy_approvals import format_call
from peripety.cli.policy_author import require_folder
from peripety.cli.policy_enforce import AsJson, PolicyPath, policy_document_path
from peripety.cli.render.policy import format_count
from peripety.engine import compile_policy
from peripety.errors import InvalidArgumentError
from peripety.policy.enforcement.decision_log import read_log
from peripety.policy.enforcement.suggestion import suggest_sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.engine import Policy, ToolRequest
    from peripety.policy.enforcement.suggestion import LeftOutCalls, SuggestedSentence, Suggestion


commands = typer.Typer()

_SHOWN_LINES = 5


def _to_call(request: ToolRequest) -> dict[str, Any]:
    return {
        "server_name": request.server_name,
        "tool_name": request.tool_name,
        "arguments": request.arguments,
        "roles": [*request.roles],
    }


def _print_sentence(sentence: SuggestedSentence) -> None:
    out = result_console()
    out.print(one_line(sentence.text), style="bold")
    out.print(
        f"  allowed: {format_call(_to_call(sentence.observed))} ({format_count(sentence.calls, 'call')})"
    )
    if sentence.nearest is None:
        out.print("  denied: no call of this tool", style="yellow")
    else:
        out.print(f"  denied: {format_call(_to_call(sentence.nearest.request))}")
    if sentence.open_arguments:
        out.print(f"  any value: {one_line(', '.join(sentence.open_arguments))}", style="yellow")


def _format_left_out(left: LeftOutCalls) -> str:
    lines = ", ".join(map(str, left.sequences[:_SHOWN_LINES]))
    more = ", …" if len(left.sequences) > _SHOWN_LINES else ""
    word = "line" if len(left.sequences) == 1 else "lines"
    return one_line(f"left out, {word} {lines}{more}: {left.reason}")


def _to_json(sentence: SuggestedSentence) -> dict[str, Any]:
    nearest = {"nearest": _to_call(sentence.nearest.request)} if sentence.nearest else {}
    return {
        "sentence": sentence.text,
        "calls": sentence.calls,
        "observed": _to_call(sentence.observed),
        **nearest,
        "open_arguments": [*sentence.open_arguments],
    }


def _write_folder(suggestion: Suggestion, policy: Policy, out: Path) -> None:
    """Write the files that `peripety policy compile` reads.

    Raises:
        BadParameter: a written policy is there already, or a file cannot be written.
    """
    if (out / "constitution.md").exists():
        raise typer.BadParameter(f"{out} has a constitution.md already; choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    files: Mapping[str, Any] = {
        "tools.json": policy.spec["tools"],
        "foundation.json": {"lists": suggestion.lists},
    }
    for name, content in files.items():
        save_file((json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode(), out / name)
    save_file(suggestion.constitution.encode(), out / "constitution.md")


@commands.command()
def suggest(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="Decision log of a proxy.")],
    policy: PolicyPath,
    opened: Annotated[
        list[str] | None,
        typer.Option(
            "--any",
            metavar="NAME",
            help="Name or role of an argument that stays unlimited; may be repeated. [default: none]",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write constitution.md, tools.json and foundation.json to this folder. [default: no folder]",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Suggest sentences that allow the calls of a decision log, and no others.

    Uses only the tools of POLICY. Shows each sentence with a call that it allows, and with a similar call
    that remains denied. Calls that a rule denied, or that a person decides, are left out. Exit code 0 if the
    sentences allow all other calls that went to their tool, 1 if they cannot express one: the output names
    it.
    """
    require_folder(out)
    document = policy_document_path(policy)
    try:
        tools = compile_policy(document.read_bytes())
        entries = [*read_log(log)]
    except OSError as error:
        raise InvalidArgumentError(
            f"cannot read {error.filename}: {error.strerror}", code="FILE_INVALID"
        ) from None
    suggestion = suggest_sentences(tools, entries, opened or ())
    if out is not None:
        _write_folder(suggestion, tools, out)
    for sentence in suggestion.sentences:
        if as_json:
            write_json(_to_json(sentence))
        else:
            _print_sentence(sentence)
    for name, content in suggestion.lists.items():
        if as_json:
            write_json({"list": name, **content})
        elif out is None:
            result_console().print(one_line(f"@{name}: {', '.join(content['values'])}"))
    for left in suggestion.left_out:
        if as_json:
            write_json(
                {"left_out": left.reason, "sequences": [*left.sequences], "is_decided": left.is_decided}
            )
        else:
            result_console().print(_format_left_out(left), style="dim" if left.is_decided else "yellow")
    covered = sum(one.calls for one in suggestion.sentences)
    total = covered + sum(len(one.sequences) for one in suggestion.left_out)
    console = person_console() if as_json else result_console()
    sentences = format_count(len(suggestion.sentences), "sentence")
    console.print(f"{sentences} for {covered:,} of {format_count(total, 'call')}", style="bold")
    raise typer.Exit(EXIT_FAILED if any(not one.is_decided for one in suggestion.left_out) else 0)
