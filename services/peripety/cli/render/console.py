"""Console view of a game, for a terminal or a file; or the same events as JSON lines.

It prints mechanics first, then prose as it arrives. On a terminal, a live status bar shows progress and
cost.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from peripety.api.common.v1 import engine_pb2
from peripety.api.scenario.v1 import scenario_pb2
from peripety.api.session.v1 import session_pb2
from peripety.cli import players
from peripety.cli.output import (
    finding_lines,
    format_dollars,
    format_model_usage,
    one_line,
    printable,
    write_json,
)
from peripety.rpc.proto_json import enum_word, to_json
from peripety.rpc.status import finding_from_proto

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from google.protobuf.message import Message
    from rich.console import Console

    from peripety.api.common.v1 import common_pb2
    from peripety.cli.game import Game
    from peripety.cli.players import PointOfView


NOT_UNDERSTOOD = "NOT_UNDERSTOOD"
"""Code of a turn that was not played, because the narrator returned a question."""

_END_OF_SPEECH = ".,!?\u2026;:"
_SHOWN_VALUE = 60
_SHOWN_HASH = 12
_RESOLUTION_NOTES = {
    session_pb2.RESOLUTION_REPAIRED: ", narration repaired once",
    session_pb2.RESOLUTION_SERVER_RESOLVED: ", fallback narration",
}
_NARRATED, _ABANDONED = "narrated", "abandoned"
_RESOLUTION_WORDS = {
    session_pb2.RESOLUTION_REPAIRED: "repaired",
    session_pb2.RESOLUTION_SERVER_RESOLVED: "fallback",
}


_ABOUT_WRITING = frozenset(
    {"WORDS_ONLY", "FILLED_BY_RULES", "WITHOUT_MODEL", "RISK_RETAINED", "LANGUAGE_REPLACED"}
)
"""Findings whose texts contain no rule."""


class ConsoleView:
    """Printer of the events of one game. It tracks whether a line of prose is open.

    Args:
        out: the console.
        follow: called with the progress of the work; the view itself prints only the current step.
        hides_rules: count findings and changes, without their texts, for a reader who is about to play.
    """

    def __init__(
        self,
        out: Console,
        follow: Callable[[scenario_pb2.Progress], None] = lambda _: None,
        *,
        hides_rules: bool = False,
    ) -> None:
        self._out = out
        self._follow = follow
        self._hides_rules = hides_rules
        self._prose_is_open = False
        self._told = ""
        self._current_step = scenario_pb2.STAGE_UNSPECIFIED
        self._turns_by_resolution: Counter[str | None] = Counter()

    def generation(self, event: scenario_pb2.GenerateScenarioResponse) -> None:
        """Print an event of the generation."""
        match event.WhichOneof("event"):
            case "progress":
                self._progress(event.progress)
            case "draft":
                self._line(f"  answer {event.draft.attempt}{_format_used(event.draft.usage)}")
            case "findings":
                self._findings(event.findings.findings, event.findings.total)
            case "repaired":
                head = f"  repaired by answer {event.repaired.attempt}{_format_used(event.repaired.usage)}"
                self._line(head, "yellow")
                self._edits(edit.summary for edit in event.repaired.edits)
            case "numbers_adjusted":
                self._rebalanced(event.numbers_adjusted)
            case "completed":
                title, *lines = _format_summary(event.completed)
                self._line(title, "bold")
                self._lines(lines)
                self._findings(event.completed.findings)
            case "rejected":
                self._line(
                    "  given up after "
                    f"{_format_attempts(event.rejected)}{_format_used(event.rejected.usage)}",
                    "red",
                )

    def compilation(self, event: scenario_pb2.CompileScenarioResponse) -> None:
        """Print an event of the compilation."""
        match event.WhichOneof("event"):
            case "progress":
                self._progress(event.progress)
            case "repaired":
                self._rebalanced(event.repaired)
            case "compiled":
                self._report(event.compiled.dry_run)
                self._findings(event.compiled.findings)
            case "rejected" if event.rejected.HasField("dry_run"):
                self._report(event.rejected.dry_run)

    def amendment(self, event: scenario_pb2.AmendScenarioResponse) -> None:
        """Print an event of a change of a stored scenario."""
        match event.WhichOneof("event"):
            case "progress":
                self._progress(event.progress)
            case "proposed":
                self._line(f"  proposed{_format_used(event.proposed.usage)}")
                self._lines(f"    {printable(edit.summary)}" for edit in event.proposed.edits)
            case "findings":
                self._lines(_finding_lines(event.findings.findings, event.findings.total), "yellow")
            case "numbers_adjusted":
                self._rebalanced(event.numbers_adjusted)
            case "amended":
                self._report(event.amended.scenario.dry_run)
                self._lines(_finding_lines(event.amended.scenario.findings), "yellow")
                self._line(f"  changed{_format_used(event.amended.usage)}", "bold")
                self._lines(f"    {printable(edit.summary)}" for edit in event.amended.edits)
            case "rejected":
                self._line(f"  given up{_format_used(event.rejected.usage)}", "red")

    def session(self, session: session_pb2.Session, viewpoint: PointOfView) -> None:
        """Print the start of a session: the point of view and its stakes."""
        self._line(f"\nSession {session.session_id}, seed {session.seed}, turn {session.turn}")
        entity = f" ({viewpoint.entity_id})" if viewpoint.entity_id else ""
        self._line(f"  point of view: {printable(viewpoint.name)}{entity}")
        self._lines((f"    {line}" for line in printable(viewpoint.description).splitlines()), "bold")

    def turn(self, event: session_pb2.TurnEvent) -> None:
        """Print an event of a turn."""
        kind = event.WhichOneof("event")
        if kind == "narrative_chunk":
            self._prose(event.narrative_chunk.text)
            return
        if kind == "dialogue" and is_quoted(event.dialogue.utterance, self._told):
            # The reader has just read these words.
            return
        self._end_prose()
        if kind in {"accepted", "narrative_retracted"}:
            self._told = ""
        if kind == "accepted":
            self._line(f"\nTurn {event.turn}", "bold")
        self._lines(format_event(event), _STYLES.get(kind or ""))
        self._turns_by_resolution[_resolution_of(event)] += 1

    def end(self, session: session_pb2.Session) -> None:
        """Print how the turns were resolved and the model usage."""
        self._line(f"\n{_format_resolutions(self._turns_by_resolution)}{_format_used(session.usage)}")

    def _progress(self, progress: scenario_pb2.Progress) -> None:
        stage = progress.stage
        if stage != self._current_step:
            word = enum_word(scenario_pb2.Progress.DESCRIPTOR.fields_by_name["stage"], stage).replace(
                "_",
                " ",
            )
            self._line(f"  {word}: {printable(progress.message)}", "dim")
        self._current_step = stage
        self._follow(progress)

    def _rebalanced(
        self,
        moved: scenario_pb2.NumbersAdjusted | scenario_pb2.CompileScenarioResponse.Repaired,
    ) -> None:
        self._line(f"  missed its budget: {format_dry_run(moved.before)}", "yellow")
        self._edits(edit.summary for edit in moved.edits)

    def _findings(self, findings: Sequence[common_pb2.Finding], total: int = 0) -> None:
        if self._hides_rules:
            about_writing = [finding for finding in findings if finding.code in _ABOUT_WRITING]
            others = max(total, len(findings)) - len(about_writing)
            self._lines([*_format_counts(others, "finding"), *_finding_lines(about_writing)], "yellow")
        else:
            self._lines(_finding_lines(findings, total), "yellow")

    def _edits(self, summaries: Iterable[str]) -> None:
        if self._hides_rules:
            self._lines(_format_counts(len([*summaries]), "change"))
        else:
            self._lines(f"    {printable(summary)}" for summary in summaries)

    def _report(self, report: scenario_pb2.DryRunReport) -> None:
        self._line(f"  dry-run: {format_dry_run(report)}", "green")
        if not self._hides_rules:
            self._lines(f"    {printable(loss.id)}: {loss.count}" for loss in report.losses)

    def _prose(self, text: str) -> None:
        if not self._prose_is_open:
            self._out.print()
        self._prose_is_open = True
        self._told += text
        self._out.print(Text(printable(text)), end="")
        self._out.file.flush()

    def _end_prose(self) -> None:
        if self._prose_is_open:
            self._out.print("\n")
        self._prose_is_open = False

    def _lines(self, lines: Iterable[str], style: str | None = None) -> None:
        for line in lines:
            self._line(line, style)

    def _line(self, text: str, style: str | None = None) -> None:
        self._out.print(Text(text, style=style or ""))


_STYLES = {"committed": "green", "rule_failed": "red", "degraded": "yellow", "narrative_retracted": "yellow"}


def _resolution_of(event: session_pb2.TurnEvent) -> str | None:
    """Return how this event resolved its turn; None if the turn continues."""
    if event.HasField("committed"):
        return _RESOLUTION_WORDS.get(event.committed.resolution, _NARRATED)
    return _ABANDONED if event.rule_failed.turn_abandoned else None


def _format_resolutions(ways: Counter[str | None]) -> str:
    """Format the number of turns by resolution. Failures are always listed."""
    counts = {way: ways[way] for way in (_NARRATED, *_RESOLUTION_WORDS.values(), _ABANDONED)}
    turns = sum(counts.values())
    said = ", ".join(f"{count} {way}" for way, count in counts.items())
    return f"{turns} turn{'' if turns == 1 else 's'}: {said}"


def format_event(event: session_pb2.TurnEvent, *, with_log: bool = True) -> list[str]:
    """Format an event as lines; empty for events that are of no interest to a person."""
    kind = event.WhichOneof("event") or ""
    if kind in {"action_resolved", "world_resolved"} and not with_log:
        shown = type(event)()
        shown.CopyFrom(event)
        getattr(shown, kind).ClearField("log")
        event = shown
    return _EVENT_FORMATTERS[kind](getattr(event, kind)) if kind in _EVENT_FORMATTERS else []


def _format_action(event: session_pb2.TurnEvent.ActionResolved) -> list[str]:
    params = ", ".join(f"{name}={_format_param(value)}" for name, value in sorted(event.params.items()))
    head = f"  > {event.action_id}({printable(params)})"
    if not event.accepted:
        return [f"{head}: rejected", *(f"    {printable(reason.message)}" for reason in event.reasons)]
    return [head, *_format_changes(event.changes), *_format_log(event.log)]


def _format_world(event: session_pb2.TurnEvent.WorldResolved) -> list[str]:
    head = [f"  event: {event.event_id}"] if event.event_id else []
    errors = [f"    {printable(error.message)} ({error.code})" for error in event.errors]
    return [*head, *_format_changes(event.changes), *_format_log(event.log), *errors]


def _format_committed(event: session_pb2.TurnEvent.Committed) -> list[str]:
    how = _RESOLUTION_NOTES.get(event.resolution, "")
    return [f"  committed {event.state_hash[:_SHOWN_HASH]}{how}: {format_status(event.status)}"]


def _format_roll(event: session_pb2.TurnEvent.Rolled) -> list[str]:
    roll = event.roll
    outcome = "success" if roll.success else "failure"
    return [f"  roll {printable(roll.kind)}: {roll.value} against {roll.difficulty}, {outcome}"]


def is_quoted(utterance: str, prose: str) -> bool:
    """Return True if prose contains the words of an utterance."""
    words = utterance.strip().rstrip(_END_OF_SPEECH)
    return bool(words) and words in prose


_RUN = 3
_LEAST_RETOLD = 0.7
_SENTENCE = re.compile(r"[^.!?:\u2026\u3002\uff01\uff1f\uff1a]+")


def is_retold(text: str, prose: str) -> bool:
    """Return True if prose has most of a text word for word: of the runs of three words in its sentences."""
    found = _split_words(prose)
    sentences = [words for one in _SENTENCE.findall(text) if (words := _split_words(one))]
    runs = [run for words in sentences for run in _runs(words, min(_RUN, len(words)))]
    known = {size: set(_runs(found, size)) for size in range(1, _RUN + 1)}
    told = [run for run in runs if run in known[len(run)]]
    return bool(runs) and len(told) >= _LEAST_RETOLD * len(runs)


def _runs(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[at : at + size]) for at in range(len(words) - size + 1)]


def _split_words(text: str) -> Sequence[str]:
    """Return the words of a text; its characters in a language without spaces."""
    words = re.findall(r"\w+", text.casefold())
    return words if " " in text.strip() or text.isascii() else "".join(words)


def _format_rule_failed(event: session_pb2.TurnEvent.RuleFailed) -> list[str]:
    if event.code == NOT_UNDERSTOOD:
        return [f"  {printable(event.message)}", "  (no turn was spent)"]
    if event.turn_abandoned and not event.rule:
        return [f"  turn not played: {printable(event.message)} ({event.code})"]
    what = "turn abandoned, nothing changed" if event.turn_abandoned else "rule skipped"
    return [f"  {what}: {printable(event.message)} ({event.code} at {printable(event.rule)})"]


_EVENT_FORMATTERS: dict[str, Callable[[Any], list[str]]] = {
    "action_resolved": _format_action,
    "world_resolved": _format_world,
    "rolled": _format_roll,
    "dialogue": lambda event: [f"  {printable(event.entity_id)}: {printable(event.utterance)}"],
    "narrative_retracted": lambda event: [f"  (this narration is void: {printable(event.reason)})"],
    "degraded": lambda event: [f"  (fallback narration, {event.reason}: {printable(event.message)})"],
    "committed": _format_committed,
    "rule_failed": _format_rule_failed,
}


def _format_changes(changes: Iterable[engine_pb2.Change]) -> list[str]:
    return [
        f"    {printable(c.path)}  {_format_before(c)} → {_format_after(c)}  ({_format_cause(c.cause)})"
        for c in changes
    ]


def _format_log(lines: Iterable[engine_pb2.LogLine]) -> list[str]:
    return [f"    “{printable(line.message)}”" for line in lines]


def _format_before(change: engine_pb2.Change) -> str:
    return format_value(change.before) if change.HasField("before") else "(nothing)"


def _format_after(change: engine_pb2.Change) -> str:
    return format_value(change.after) if change.HasField("after") else "(nothing)"


def format_value(value: bytes) -> str:
    """Format a value for a person, truncated to one line."""
    text = printable(value.decode(errors="replace"))
    return text if len(text) <= _SHOWN_VALUE else f"{text[:_SHOWN_VALUE]}…"


def _format_cause(cause: engine_pb2.Cause) -> str:
    kind = enum_word(engine_pb2.Cause.DESCRIPTOR.fields_by_name["kind"], cause.kind)
    return f"{kind} {cause.id}" if cause.id else kind


def _format_param(value: engine_pb2.ParamValue) -> str:
    return f'"{value.text}"' if value.WhichOneof("kind") == "text" else players.format_value(value)


def format_status(status: engine_pb2.RunStatus) -> str:
    """Format the status of a run: in progress, or how it ended."""
    word = enum_word(engine_pb2.RunStatus.DESCRIPTOR.fields_by_name["kind"], status.kind)
    return " - ".join(
        part for part in (f"{word} {status.condition}".strip(), printable(status.message)) if part
    )


def format_dry_run(report: scenario_pb2.DryRunReport) -> str:
    """Format the result of a dry-run on one line."""
    persona = enum_word(scenario_pb2.DryRunReport.DESCRIPTOR.fields_by_name["persona"], report.persona)
    interval = f"95% interval {report.wilson_low:.1%} to {report.wilson_high:.1%}"
    return f"{report.lost} of {report.runs} runs lost ({report.fail_rate:.1%}; {interval}), persona {persona}"


def _finding_lines(findings: Sequence[common_pb2.Finding], total: int = 0) -> list[str]:
    return finding_lines(list(map(finding_from_proto, findings)), total, indent="    ")


def list_notes(findings: Iterable[common_pb2.Finding]) -> list[str]:
    """Return the messages of findings about the writing, which contain no rule."""
    return [one_line(finding.message) for finding in findings if finding.code in _ABOUT_WRITING]


def _format_counts(count: int, what: str) -> list[str]:
    return [f"    {count} {what}{'' if count == 1 else 's'}"] if count else []


def _format_used(usage: common_pb2.ModelUsage) -> str:
    tokens = usage.tokens
    return f": {format_model_usage(usage)}" if tokens.input_tokens or tokens.output_tokens else ""


def _format_attempts(result: scenario_pb2.GenerateScenarioResponse.Rejected) -> str:
    return f"{result.attempts} answer{'' if result.attempts == 1 else 's'}"


def _format_summary(completed: scenario_pb2.GenerateScenarioResponse.Completed) -> list[str]:
    """Format a specification: its parts, its author and its fairness, one line each."""
    spec = json.loads(completed.spec)
    counts = ", ".join(
        f"{len(spec.get(key, []))} {name}"
        for key, name in [
            ("actions", "actions"),
            ("random_events", "events"),
            ("loss_conditions", "ways to lose"),
        ]
    )
    by = "rules, without a language model" if completed.authored_without_model else completed.model
    when = ", cached for the same description" if completed.from_cache else _format_used(completed.usage)
    lines = [f"{printable(spec['name'])}: {counts}", f"  written by {printable(by)}{when}"]
    return [*lines, _format_fairness(completed.certificate)] if completed.HasField("certificate") else lines


def _format_fairness(certificate: scenario_pb2.Certificate) -> str:
    verdict = enum_word(scenario_pb2.Certificate.DESCRIPTOR.fields_by_name["verdict"], certificate.verdict)
    persona = scenario_pb2.PersonaReport.DESCRIPTOR.fields_by_name["persona"]
    lost = ", ".join(
        f"{enum_word(persona, fared.persona)} {fared.lost.value:.1%}" for fared in certificate.personas
    )
    return f"  {verdict} {certificate.certificate_hash[:_SHOWN_HASH]}: lost by {lost}"


@contextmanager
def live_view(out: Console) -> Iterator[ConsoleView]:
    """Yield a console view. The bar is shown only on a terminal."""
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("", total=1.0)

        def follow(progress: scenario_pb2.Progress) -> None:
            bar.update(task, completed=progress.fraction, description=_progress_text(progress))

        yield ConsoleView(out, follow)


def _progress_text(progress: scenario_pb2.Progress) -> str:
    message = one_line(progress.message)
    spent = progress.usage.cost.pico_units
    return f"{message} · {format_dollars(spent)}" if spent else message


def format_answer(
    answer: session_pb2.AskSessionResponse, *, turn: str = "turn {turn}", start: str = "the start"
) -> str:
    """Return an answer with the turns that it rests on, on one line.

    Args:
        answer: the answer.
        turn: the form of a turn.
        start: the words for the start.
    """
    turns = [turn.format(turn=number) if number else start for number in answer.turns]
    return printable(f"{answer.answer} [{', '.join(turns)}]" if turns else answer.answer)


class PreparationView(Protocol):
    """Output of the generation and the compilation of a scenario."""

    def generation(self, event: scenario_pb2.GenerateScenarioResponse) -> None:
        """Show an event of the generation."""

    def compilation(self, event: scenario_pb2.CompileScenarioResponse) -> None:
        """Show an event of the compilation."""


class JsonGameView:
    """JSON lines view: one line per event, `{"step": ..., <the event's fields>}`."""

    def generation(self, event: scenario_pb2.GenerateScenarioResponse) -> None:
        """Print an event of the generation."""
        self._print("generation", event)

    def compilation(self, event: scenario_pb2.CompileScenarioResponse) -> None:
        """Print an event of the compilation."""
        self._print("compilation", event)

    def open(self, game: Game) -> None:
        """Print the session."""
        self._print("session", game.session)

    async def resume(self, game: Game) -> None:
        """Print the session."""
        self.open(game)

    def echo(self, game: Game, calls: Iterable[engine_pb2.ActionCall]) -> None:
        """Print nothing: the turn repeats its actions."""

    def turn(self, event: session_pb2.TurnEvent) -> None:
        """Print an event of a turn."""
        self._print("turn", event)

    def status(self, game: Game) -> None:
        """Print nothing: the last event of a turn contains the status."""

    def end(self, game: Game) -> None:
        """Print the final session."""
        self._print("end", game.session)

    @staticmethod
    def _print(step: str, message: Message) -> None:
        write_json({"step": step, **to_json(message)})
