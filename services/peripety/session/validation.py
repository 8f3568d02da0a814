"""Request validation that depends on the request alone, or on a session and specification at hand."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from peripety.core.validation import UUID_PATTERN, check_request_id
from peripety.errors import (
    ConflictError,
    FailedPreconditionError,
    FieldViolation,
    InvalidArgumentError,
    field_error,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.session.branch_types import CompareRequest, ForkRequest, RewindRequest
    from peripety.session.seats.turn_order import SubmitActionsRequest
    from peripety.session.types import (
        ForecastRequest,
        NarratorOptions,
        NewSession,
        PlayerAction,
        SeatConfig,
        Session,
        TurnRequest,
    )
    from peripety.session.watch.topic import WatchRequest


_MAX_SEED = 2**53 - 1
_MAX_ACTIONS = 16
_MAX_INPUT_BYTES = 16 * 1024
_MAX_QUESTION_CHARACTERS = 1_000
_MAX_SEATS = 16
_MAX_SEAT_ID_CHARACTERS = 64
_SEAT_SECONDS = (1.0, 30 * 24 * 3600.0)
_MAX_SIMULATIONS = 100_000
_MAX_HORIZON = 1_000
_MAX_MODEL_CHARACTERS = 256
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,7}")


def check_new_session(new: NewSession) -> None:
    """Raise an error if a session request is invalid by itself.

    Raises:
        InvalidArgumentError: with a violation for each invalid field.
    """
    _raise_if_any(
        [
            *_request_id(new.request_id),
            *_required(".scenario_id", new.scenario_id),
            *_seed(new.seed),
            *_narrator(new.narrator),
            *_table(new.table),
        ],
    )


def check_question(question: str) -> None:
    """Raise an error if a question is empty or too long.

    Raises:
        InvalidArgumentError: with the violation.
    """
    if not question.strip():
        raise field_error(".question", "is required: write a question")
    if len(question) > _MAX_QUESTION_CHARACTERS:
        raise field_error(".question", f"is longer than {_MAX_QUESTION_CHARACTERS} characters; shorten it")


def check_playable_seats(table: SeatConfig, spec: Mapping[str, Any]) -> None:
    """Raise an error if a seat is for an entity that is not playable.

    Raises:
        InvalidArgumentError: with a violation for each such seat.
    """
    playable = {entity["id"] for entity in spec.get("entities", ()) if entity.get("playable")}
    _raise_if_any(
        [
            FieldViolation(
                f".seat_config.seats[{index}].entity_id",
                "is not a playable entity of the scenario",
            )
            for index, seat in enumerate(table.seats)
            if seat.entity_id not in playable
        ],
    )


def check_turn_request(request: TurnRequest) -> None:
    """Raise an error if a turn request is invalid by itself.

    Raises:
        InvalidArgumentError: with a violation for each invalid field.
    """
    _raise_if_any(
        [
            *_required(".session_id", request.session_id),
            *_request_id(request.request_id),
            *_expected_turn(request.expected_turn),
            *_actions(request.actions),
            *_input(request.input),
        ],
    )


def check_submission(submission: SubmitActionsRequest) -> None:
    """Raise an error if a submission of a seat is invalid by itself.

    Raises:
        InvalidArgumentError: with a violation for each invalid field.
    """
    _raise_if_any(
        [
            *_required(".session_id", submission.session_id),
            *_request_id(submission.request_id),
            *_expected_turn(submission.expected_turn),
            *_required(".seat_id", submission.seat_id),
            *_actions(submission.actions),
            *_input(submission.input),
        ],
    )


def check_forecast_request(request: ForecastRequest) -> None:
    """Raise an error if a forecast request is invalid by itself.

    Raises:
        InvalidArgumentError: with a violation for each invalid field.
    """
    _raise_if_any(
        [
            *_required(".session_id", request.session_id),
            *_in_range(".runs", request.runs, _MAX_SIMULATIONS),
            *_in_range(".horizon", request.horizon, _MAX_HORIZON),
            *_seed(request.seed),
            *_actions(request.actions),
        ],
    )


def check_ongoing(session: Session) -> None:
    """Raise an error if the run of a session has ended.

    Raises:
        FailedPreconditionError: `RUN_ENDED`.
    """
    if session.status.kind != "ongoing":
        raise FailedPreconditionError(
            f"run has ended ({session.status.kind}); create another session",
            code="RUN_ENDED",
        )


def check_next_turn(expected_turn: int, session: Session) -> None:
    """Raise an error if a turn is not the next one of a session.

    Raises:
        ConflictError: `STALE_TURN`.
    """
    if expected_turn != session.turn + 1:
        raise ConflictError(
            f"expected_turn is {expected_turn}, but the next turn of the session is"
            f" {session.turn + 1}; read the session again and continue from there",
            code="STALE_TURN",
            details={"turn": str(session.turn), "expected_turn": str(expected_turn)},
        )


def check_known_actions(actions: Sequence[PlayerAction], spec: Mapping[str, Any]) -> None:
    """Raise an error if an action does not exist in the scenario.

    Raises:
        InvalidArgumentError: an action is unknown.
    """
    known = {action["id"] for action in spec["actions"]}
    for index, action in enumerate(actions):
        if action.action_id not in known:
            name = action.action_id[:64]
            raise field_error(
                f".actions[{index}].action_id",
                f"is not an action of the scenario: '{name}'; use one of the session's legal_actions",
            )


def check_session_id(session_id: str) -> None:
    """Raise an error if a session id is empty.

    Raises:
        InvalidArgumentError: the id is empty.
    """
    _raise_if_any([*_required(".session_id", session_id)])


def check_watch_request(request: WatchRequest) -> None:
    """Raise an error if a watch request is invalid by itself.

    Raises:
        InvalidArgumentError: with a violation for each invalid field.
    """
    _raise_if_any(
        [
            *_required(".session_id", request.session_id),
            *_not_negative(".after_sequence", request.after),
            *_not_negative(".delay_turns", request.delay_turns),
            *_attempt_id(request.attempt_id),
        ],
    )


def check_deletion(session_id: str, request_id: str) -> None:
    """Raise an error if a deletion request is invalid by itself.

    Raises:
        InvalidArgumentError: with a violation for each invalid field.
    """
    _raise_if_any([*_required(".session_id", session_id), *_request_id(request_id)])


def check_fork(request: ForkRequest) -> None:
    """Raise an error if a fork request is invalid by itself.

    Raises:
        InvalidArgumentError: with a violation for each invalid field.
    """
    _raise_if_any(
        [
            *_required(".session_id", request.session_id),
            *_request_id(request.request_id),
            *_not_negative(".turn", request.turn or 0),
            *_seed(request.seed),
        ],
    )


def check_rewind(request: RewindRequest) -> None:
    """Raise an error if a rewind request is invalid by itself.

    Raises:
        InvalidArgumentError: with a violation for each invalid field.
    """
    violations = [
        *_required(".session_id", request.session_id),
        *_request_id(request.request_id),
        *_not_negative(".turn", request.turn),
    ]
    if request.expected_turn < 1:
        violations.append(FieldViolation(".expected_turn", "is required: the session's turn, at least 1"))
    elif request.turn >= request.expected_turn:
        violations.append(
            FieldViolation(".turn", f"must be less than {request.expected_turn}, the session's turn"),
        )
    _raise_if_any(violations)


def check_comparison(request: CompareRequest) -> None:
    """Raise an error if a comparison request does not name two sessions.

    Raises:
        InvalidArgumentError: with a violation for each invalid field.
    """
    _raise_if_any(
        [
            *_required(".session_id", request.session_id),
            *_required(".other_session_id", request.other_session_id),
        ],
    )


def _not_negative(field: str, value: int) -> Iterator[FieldViolation]:
    if value < 0:
        yield FieldViolation(field, "must not be negative")


def _request_id(value: str) -> Iterator[FieldViolation]:
    try:
        check_request_id(value)
    except InvalidArgumentError as error:
        yield from error.violations


def _required(field: str, value: str) -> Iterator[FieldViolation]:
    if not value:
        yield FieldViolation(field, "is required")


def _attempt_id(value: str | None) -> Iterator[FieldViolation]:
    if value is not None and not UUID_PATTERN.fullmatch(value):
        yield FieldViolation(".attempt_id", "must be the attempt_id of an `accepted` event, or empty")


def _table(table: SeatConfig | None) -> Iterator[FieldViolation]:
    if table is None:
        return
    if not 1 <= len(table.seats) <= _MAX_SEATS:
        yield FieldViolation(
            ".seat_config.seats",
            f"has {len(table.seats)} seats; must have from 1 to {_MAX_SEATS}",
        )
    least, most = _SEAT_SECONDS
    if table.seconds is not None and not least <= table.seconds <= most:
        yield FieldViolation(".seat_config.seat_timeout", f"must be from {least:g} to {most:g} seconds")
    ids: set[str] = set()
    entities: set[str] = set()
    for index, seat in enumerate(table.seats[:_MAX_SEATS]):
        field = f".seat_config.seats[{index}]"
        if not 1 <= len(seat.seat_id) <= _MAX_SEAT_ID_CHARACTERS:
            yield FieldViolation(
                f"{field}.seat_id",
                f"must have from 1 to {_MAX_SEAT_ID_CHARACTERS} characters",
            )
        if seat.seat_id in ids:
            yield FieldViolation(f"{field}.seat_id", "is used for another seat; make seat ids unique")
        if seat.entity_id in entities:
            yield FieldViolation(
                f"{field}.entity_id",
                "is already played from another seat; use another entity",
            )
        ids.add(seat.seat_id)
        entities.add(seat.entity_id)


def _seed(seed: int | None) -> Iterator[FieldViolation]:
    if seed is not None and not 0 <= seed <= _MAX_SEED:
        yield FieldViolation(".seed", "must be from 0 to 2^53 - 1")


def _expected_turn(turn: int) -> Iterator[FieldViolation]:
    if turn < 1:
        yield FieldViolation(".expected_turn", "is required: the session's turn + 1")


def _actions(actions: Sequence[PlayerAction]) -> Iterator[FieldViolation]:
    if len(actions) > _MAX_ACTIONS:
        yield FieldViolation(
            ".actions",
            f"has {len(actions)} actions; a turn may have at most {_MAX_ACTIONS}",
        )
    for index, action in enumerate(actions[:_MAX_ACTIONS]):
        for name, value in action.params.items():
            if isinstance(value, float) and not math.isfinite(value):
                yield FieldViolation(f".actions[{index}].params[{name[:64]}]", "must be a finite number")


def _narrator(options: NarratorOptions) -> Iterator[FieldViolation]:
    if len(options.model or "") > _MAX_MODEL_CHARACTERS:
        reason = f"must have at most {_MAX_MODEL_CHARACTERS} characters; leave empty for the configured model"
        yield FieldViolation(".narrator.model", reason)
    if options.language is not None and not _LANGUAGE.fullmatch(options.language):
        yield FieldViolation(".narrator.language", "must be a BCP 47 tag, such as en or pt-BR")
    if options.session_budget is not None and options.session_budget.max_seconds is not None:
        yield FieldViolation(".narrator.session_budget.max_time", "is not supported for sessions; omit it")


def _in_range(field: str, value: int, maximum: int) -> Iterator[FieldViolation]:
    if not 0 <= value <= maximum:
        yield FieldViolation(field, f"is {value}; must be from 1 to {maximum:,}, or 0 for the default")


def _input(text: str) -> Iterator[FieldViolation]:
    size = len(text.encode())
    if size > _MAX_INPUT_BYTES:
        yield FieldViolation(".input", f"has {size} bytes; the limit is {_MAX_INPUT_BYTES}")


def _raise_if_any(violations: list[FieldViolation]) -> None:
    if violations:
        message = "; ".join(f"{violation.field} {violation.reason}" for violation in violations)
        raise InvalidArgumentError(message, violations=violations)
