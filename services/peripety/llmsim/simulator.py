"""Simulator: the handle that answers requests in process, over HTTP and on the command line.

The design goal is an answer that depends only on the script, its seed and the requests of the same
conversation. Other conversations have an influence only if the script shares its counts; thread scheduling
and restarts have none. A failing test can then be repeated, and parallel tests can share one simulator.

A request is handled in one step, `begin`, under one lock:

1. Find the conversation of the request, and number the request in it. The number and the seed determine all
   random numbers and ids.
2. Check the API key, then meter the request: context size, cache controls, rate limits. An error at this
   point is the provider's own and leaves the script untouched.
3. Select the fault: injected faults first, then script-wide ones. A fault of these two that replaces the
   answer does not advance the script, so a retry meets the same turn.
4. Match the prompt against the script, select the fault of the rule, and build the reply.
5. Store the next position, capture the call, and record it if a recorder is set.

The result is an `Exchange`. It contains all decisions as data and performs no input or output. The caller
delivers it, in process or over HTTP, and reports three moments: started, finished, abandoned. Cache entries
become visible and the bill is settled at these moments, because providers do the same: an entry exists once
its answer starts, and an aborted stream still costs something.

All state that outlives a request is in `Tables`. This makes `fork`, `reset` and the state file independent of
what the state means. `step` saves the changed entries in one transaction.

Invariants:

- Once decided, an answer has advanced the script, whether or not it is delivered.
- A request that cannot be parsed changes nothing but the capture log.
- Credentials are stored and captured as fingerprints only.

State is not bound to a connection, because HTTP clients pool and reopen connections. A global random
generator was rejected, because its sequence would depend on other conversations.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any, Self, Unpack

from peripety.llmsim.capture import CaptureLog, FailedOutcome, RequestSummary, UnmatchedOutcome, make_outcome
from peripety.llmsim.conversations import ScriptCursor, ScriptedReply, SimConversations
from peripety.llmsim.delivery.plan import DeliverySettings
from peripety.llmsim.determinism import SeededRng, SimClock
from peripety.llmsim.faults.injection import FaultSelector, InjectedFault, fault_error
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.in_process import (
    DEFAULT_CONVERSATION,
    PromptOptions,
    collect_answer,
    make_request,
    stream_events,
)
from peripety.llmsim.lint.script_lint import NearMisses
from peripety.llmsim.provider_rules.billing import Meter
from peripety.llmsim.provider_rules.models import load_models
from peripety.llmsim.record.recorder import ScriptRecorder
from peripety.llmsim.response_builder import build_response
from peripety.llmsim.script.types import CountScope, ScriptResponse
from peripety.llmsim.script_engine import Exchange, ScriptEngine
from peripety.llmsim.state import StateFile, StateTables
from peripety.llmsim.types import Api, ApiError, ApiErrorKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from peripety.engine.patterns.syntax import MatchSubject
    from peripety.llmsim.capture import Outcome
    from peripety.llmsim.conversations import SimConversation
    from peripety.llmsim.in_process import Event, SimAnswer
    from peripety.llmsim.provider_rules.billing import AdmittedRequest, UsageAccount
    from peripety.llmsim.provider_rules.models import SimModel
    from peripety.llmsim.script.types import Fault, Script
    from peripety.llmsim.state import StateTable
    from peripety.llmsim.types import SimBlock, SimRequest


class Simulator:
    """A scripted LLM.

    Its answers depend only on the script, its seed and the requests. Thread-safe; each request is one atomic
    step.

    Args:
        script: the script.
        seed: overrides the seed of the script.
        state: storage of all state: tables, or a file that persists between processes; None for memory only.
        capture: a file that gets a line of JSON per call.
        record: a script file that reproduces the answers; it is overwritten.

    Raises:
        PatternError: a pattern is not valid.
        FailedPreconditionError: the state file cannot be used.

    Attributes:
        captured: all calls, for queries and assertions.
    """

    def __init__(
        self,
        script: Script,
        *,
        seed: int | None = None,
        state: Path | StateTables | None = None,
        capture: Path | None = None,
        record: Path | None = None,
    ) -> None:
        self.captured = CaptureLog(lambda: self.script.responses, capture)
        self._recorder = ScriptRecorder(record) if record else None
        self._lock = RLock()
        self._seed = seed
        self._tables = (
            state if isinstance(state, StateTables) else StateTables(StateFile(state) if state else None)
        )
        self._injected_faults: list[InjectedFault] = []
        self._meter = Meter(script, self._tables)
        self._load_script(script)

    def _load_script(self, script: Script) -> None:
        self._near_misses: NearMisses | None = None
        self._script = ScriptEngine(script if self._seed is None else replace(script, seed=self._seed))
        self._clock = SimClock(script, self._tables["clock"])
        self._conversations = SimConversations(
            self._tables["conversations"],
            shared=script.counts is CountScope.SHARED,
        )
        self._script_cursor = ScriptCursor(self._script, self._conversations)
        self._fault_selector = FaultSelector(self.script, self._conversations, self._injected_faults)

    # ---- the handle

    @property
    def script(self) -> Script:
        """The script."""
        return self._script.script

    def fork(self) -> Simulator:
        """Return an independent copy with the same state, in memory only."""
        with self._lock:
            copy = Simulator(self.script, seed=self._seed, state=self._tables.fork())
            copy._injected_faults += [replace(injected) for injected in self._injected_faults]
            return copy

    def reload(self, script: Script) -> None:
        """Use another script from the next request on.

        Active sequences, counts, caches and limits remain. Rules are identified by name or, without a name,
        by pattern.

        Raises:
            PatternError: a pattern is not valid; the old script stays in use.
        """
        with self._lock:
            self._load_script(script)
            self._meter.apply_limits(script)

    def inject(self, failure: Fault) -> None:
        """Inject a fault into the next requests, before the faults of the script."""
        with self._lock:
            self._injected_faults.append(InjectedFault(f"injected[{len(self._injected_faults)}]", failure))

    def advance(self, seconds: float) -> float:
        """Advance the virtual clock and return the new time, in seconds since 1970.

        Raises:
            InvalidArgumentError: the step is negative, or ends beyond the year 8999.
            FailedPreconditionError: the script uses the machine's clock.
        """
        with self.transaction():
            return self._clock.advance(seconds)

    def has_active_sequence(self, conversation: str = DEFAULT_CONVERSATION, key: str = "") -> bool:
        """Return True if a named conversation is inside a sequence."""
        with self._lock:
            return self._conversations.has_active_sequence(conversation, key)

    def reset_turns(self) -> None:
        """End every sequence."""
        with self.transaction():
            self._conversations.reset_turns()

    def reset_counters(self) -> None:
        """End every sequence, and reset the counts of matches, requests and faults."""
        with self.transaction():
            self._conversations.reset_counters()
            self._injected_faults.clear()

    def reset(self) -> None:
        """Reset everything: conversations, calls, caches, limits, bills, stored objects and the clock."""
        with self.transaction():
            self.captured.clear()
            self._tables.clear()
            self._injected_faults.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._tables.close()
            self.captured.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block under the lock, then save all changes."""
        with self._lock:
            yield
            self._tables.save()

    # ---- in-process requests

    def execute(self, prompt: str, **how: Unpack[PromptOptions]) -> SimAnswer:
        """Return the complete answer at once, without its delays.

        Args:
            prompt: the user message; earlier messages are not repeated.
            how: see `PromptOptions`.

        Raises:
            ApiError: the request was rejected, or an error arrived inside the answer.
            InterruptedAnswerError: the answer ends before it is complete.
            UnreadableAnswerError: the received bytes are not a valid answer.
        """
        return collect_answer(self.begin(make_request(prompt, how)))

    def stream(self, prompt: str, **how: Unpack[PromptOptions]) -> AsyncIterator[Event]:
        """Yield the events of the answer at their own pace. See `execute`."""
        return stream_events(self.begin(make_request(prompt, how)))

    @property
    def accounts(self) -> Sequence[UsageAccount]:
        """The usage of every key and model, and its cost in pico-dollars."""
        with self._lock:
            return list(self._meter.ledger)

    # ---- services for wire modules

    def now(self) -> float:
        """Return the time in seconds since 1970, by the simulator's clock."""
        return self._clock.now()

    def models(self, api: Api) -> Sequence[SimModel]:
        """Return the known models of an API's provider."""
        return load_models().models_of(api)

    def objects(self, name: str) -> StateTable:
        """Return the table of objects that an API stores under a name."""
        return self._tables[name]

    def store_objects(self, objects: Mapping[str, Mapping[str, Any]]) -> None:
        """Store objects of an answer: values by table and key."""
        with self.transaction():
            for name, values in objects.items():
                for key, value in values.items():
                    self._tables[name].put(key, value)

    # ---- answering

    def begin(self, request: SimRequest) -> Exchange:
        """Decide the answer to a request.

        The request consumes limits and counts and advances its conversation, whether or not the answer is
        delivered.
        """
        with self.transaction():
            conversation = self._conversations.conversation_of(request)
            number = self._conversations.next_request_number(conversation)
            chance = SeededRng(self.script.seed, conversation.scope, number)
            subject = conversation.subject(request.model)
            try:
                self._check_key(request)
                metered = self._meter.admit(request, self.now())
            except ApiError as error:
                manner = DeliverySettings(self.script.pace, chance.draw)
                known = error.kind is not ApiErrorKind.AUTHENTICATION
                allowance = self._meter.remaining_limits(request, self.now()) if known else None
                exchange = Exchange(
                    request,
                    chance.id("request"),
                    manner,
                    error=error,
                    rate_allowance=allowance,
                )
            else:
                exchange = self._decide(request, conversation, subject, chance, metered)
            self._capture(exchange, subject)
            if self._recorder is not None:
                self._recorder.record_exchange(exchange)
            return exchange

    def _capture(self, exchange: Exchange, subject: MatchSubject) -> None:
        reply, error, manner = exchange.reply, exchange.error, exchange.delivery
        came: Outcome
        empty = reply is not None and exchange.label is None and manner.fault is None
        if empty or isinstance(error, NoMatchingRuleError):
            came = UnmatchedOutcome(self._near_miss_lines(subject))
        else:
            came = make_outcome(reply, error, manner.fault, int(manner.delay_ms))
        self.captured.record(
            RequestSummary.from_request(exchange.request, subject),
            self.now(),
            exchange.label,
            came,
        )

    def _near_miss_lines(self, subject: MatchSubject) -> tuple[str, ...]:
        """Return the rules closest to an unmatched prompt."""
        if self._near_misses is None:
            self._near_misses = NearMisses(self.script.responses)
        return tuple(str(near) for near in self._near_misses.closest(subject))

    def capture_rejected(self, api: Api, error: ApiError) -> None:
        """Capture a request that could not be parsed; no other state changes."""
        self.captured.record(
            RequestSummary(api),
            self.now(),
            None,
            FailedOutcome(error.kind.value, error.message),
        )

    def _check_key(self, request: SimRequest) -> None:
        keys = self.script.keys
        if keys and request.key not in keys:
            raise ApiError(ApiErrorKind.AUTHENTICATION, "Invalid API key")

    def _decide(
        self,
        request: SimRequest,
        conversation: SimConversation,
        subject: MatchSubject,
        chance: SeededRng,
        metered: AdmittedRequest,
    ) -> Exchange:
        failure = self._fault_selector.select_general(conversation)
        # A fault before the model runs leaves the script unchanged.
        advances = failure is None or KINDS[failure.type].needs_response
        scripted = self._script_cursor.match_prompt(subject, conversation) if advances else ScriptedReply()
        own = scripted.fault
        if (
            failure is None
            and own
            and self._fault_selector.is_due(conversation, f"{scripted.label}.failure", own)
        ):
            failure = own
        response = scripted.response or ScriptResponse()
        pace = response.pace or self.script.pace
        error = None if failure is None else fault_error(failure, stream=request.stream)
        if failure is None and scripted.label is None and request.api is not Api.IN_PROCESS:
            error = NoMatchingRuleError(self._near_miss_lines(subject))
        reply = None
        if error is None:
            reply = build_response(
                request,
                response,
                failure,
                rng=chance,
                created=self.now(),
                tokens_per_chunk=pace.tokens_per_chunk,
                count_usage=metered.usage,
            )
        else:
            metered.on_abandoned()
        if advances:
            self._script_cursor.store_position(conversation, scripted.position, reply, failure)
        return Exchange(
            request=request,
            id=chance.id("request"),
            delivery=DeliverySettings(pace, chance.draw, response.delay_ms, failure),
            label=scripted.label,
            reply=reply,
            error=error,
            rate_allowance=metered.remaining_limits(self.now()),
            on_started=self._at_moment(metered.on_started),
            on_finished=self._at_end(metered),
            on_abandoned=self._at_moment(metered.on_abandoned),
        )

    def _at_moment(self, callback: Callable[[float], None]) -> Callable[[], None]:
        def tell() -> None:
            with self.transaction():
                callback(self.now())

        return tell

    def _at_end(self, metered: AdmittedRequest) -> Callable[[Sequence[SimBlock]], None]:
        def tell(answer: Sequence[SimBlock]) -> None:
            with self.transaction():
                metered.on_finished(self.now(), answer)

        return tell


class NoMatchingRuleError(ApiError):
    """No rule matches, and the script has no default response."""

    def __init__(self, closest: Sequence[str]) -> None:
        message = "no rule of the script matches this prompt, and the script has no default_response"
        if closest:
            message += f"; near misses: {' | '.join(closest)}"
        super().__init__(ApiErrorKind.INVALID_REQUEST, message)
