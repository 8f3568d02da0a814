"""The scripted LLM: one handle for tests in this process, for the HTTP server, and for the command line."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any, Self, Unpack

from peripety.simulator.analysis import NearMisses
from peripety.simulator.capture import Asked, CaptureLog, Failed, Unmatched, outcome
from peripety.simulator.chance import Chance
from peripety.simulator.clock import Clock
from peripety.simulator.composing import compose
from peripety.simulator.conversations import Conversations
from peripety.simulator.delivery.plan import Manner
from peripety.simulator.exchange import Exchange
from peripety.simulator.failing import Failing, Injected
from peripety.simulator.failures import KINDS, refusal
from peripety.simulator.in_process import CONVERSATION, How, answer, events, request
from peripety.simulator.model import Api, ApiError, ErrorKind
from peripety.simulator.record.recorder import Recorder
from peripety.simulator.scenario.model import CountScope, Response
from peripety.simulator.script import Script
from peripety.simulator.state import Tables
from peripety.simulator.stepping import Scripted, Stepping
from peripety.simulator.store import Store
from peripety.simulator.truth.meter import Meter
from peripety.simulator.truth.models import catalogue

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from peripety.sim.patterns import Subject
    from peripety.simulator.capture import Outcome
    from peripety.simulator.conversations import Conversation
    from peripety.simulator.delivery.events import Event
    from peripety.simulator.in_process import Answer
    from peripety.simulator.model import Block, Request
    from peripety.simulator.scenario.model import Failure, Scenario
    from peripety.simulator.state import Table
    from peripety.simulator.truth.bill import Account
    from peripety.simulator.truth.meter import Metered
    from peripety.simulator.truth.models import Model

__all__ = ["Simulator"]


class Simulator:
    """A scripted LLM.

    What it answers follows from the scenario, its seed and the requests alone. Several threads may use it;
    each request is one step.

    Args:
        scenario: what it says.
        seed: instead of the scenario's own.
        state: where it keeps what it remembers: tables, or a file that keeps them between processes; None
            forgets everything with this handle.
        capture: a file that gets a line of JSON for each call.
        record: a scenario file that is to answer as this simulator did; what it held is replaced.

    Raises:
        PatternError: a pattern is not valid.
        FailedPreconditionError: the state file cannot be used.

    Attributes:
        captured: every call, for queries and assertions.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        seed: int | None = None,
        state: Path | Tables | None = None,
        capture: Path | None = None,
        record: Path | None = None,
    ) -> None:
        self.captured = CaptureLog(lambda: self.scenario.responses, capture)
        self._recorder = Recorder(record) if record else None
        self._lock = RLock()
        self._seed = seed
        self._tables = state if isinstance(state, Tables) else Tables(Store(state) if state else None)
        self._injected: list[Injected] = []
        self._meter = Meter(scenario, self._tables)
        self._play(scenario)

    def _play(self, scenario: Scenario) -> None:
        self._near_misses: NearMisses | None = None
        self._script = Script(scenario if self._seed is None else replace(scenario, seed=self._seed))
        self._clock = Clock(scenario, self._tables["clock"])
        self._conversations = Conversations(
            self._tables["conversations"], shared=scenario.counts is CountScope.SHARED
        )
        self._stepping = Stepping(self._script, self._conversations)
        self._failing = Failing(self.scenario, self._conversations, self._injected)

    # ---- the handle

    @property
    def scenario(self) -> Scenario:
        """What it says."""
        return self._script.scenario

    def fork(self) -> Simulator:
        """An independent copy in the same state, which is kept in no file."""
        with self._lock:
            copy = Simulator(self.scenario, seed=self._seed, state=self._tables.fork())
            copy._injected += [replace(injected) for injected in self._injected]
            return copy

    def reload(self, scenario: Scenario) -> None:
        """Go on by another scenario, from the next request on.

        Sequences that are under way, counts, caches and limits stay. A rule is the same as before if it has
        the same name or, without one, the same pattern.

        Raises:
            PatternError: a pattern is not valid; everything stays as it was.
        """
        with self._lock:
            self._play(scenario)
            self._meter.reload(scenario)

    def inject(self, failure: Failure) -> None:
        """Let something go wrong with the next requests, before the scenario's own failures are asked."""
        with self._lock:
            self._injected.append(Injected(f"injected[{len(self._injected)}]", failure))

    def advance(self, seconds: float) -> float:
        """Move the virtual clock on, and say how late it is then, in seconds since 1970.

        Raises:
            InvalidArgumentError: time does not run backwards, nor beyond the year 8999.
            FailedPreconditionError: the scenario's clock is the machine's.
        """
        with self.step():
            return self._clock.advance(seconds)

    def has_active_sequence(self, conversation: str = CONVERSATION, key: str = "") -> bool:
        """Whether a named conversation is inside a sequence."""
        with self._lock:
            return self._conversations.has_active_sequence(conversation, key)

    def reset_turns(self) -> None:
        """End every sequence."""
        with self.step():
            self._conversations.reset_turns()

    def reset_counts(self) -> None:
        """End every sequence; count matches, requests and failures from the beginning."""
        with self.step():
            self._conversations.reset_counts()
            self._injected.clear()

    def reset(self) -> None:
        """Forget everything: conversations, calls, caches, limits, bills, what is stored, and the time."""
        with self.step():
            self.captured.clear()
            self._tables.clear()
            self._injected.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of its files."""
        with self._lock:
            self._tables.close()
            self.captured.close()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Let what happens inside happen at once, and keep all of it in the end."""
        with self._lock:
            yield
            self._tables.save()

    # ---- asking in this process

    def execute(self, prompt: str, **how: Unpack[How]) -> Answer:
        """Ask, and get the whole answer at once, however long it would have taken.

        Args:
            prompt: what the user says; what was said before is not repeated.
            how: see `How`.

        Raises:
            ApiError: the request was refused, or an error arrived inside the answer.
            InterruptedAnswerError: the answer ends before its end.
            UnreadableAnswerError: what arrives is no answer.
        """
        return answer(self.begin(request(prompt, how)))

    def stream(self, prompt: str, **how: Unpack[How]) -> AsyncIterator[Event]:
        """Ask, and get the answer piece by piece, at its own pace; see `execute`."""
        return events(self.begin(request(prompt, how)))

    @property
    def accounts(self) -> Sequence[Account]:
        """What every key has used of every model, and owes for it in pico-dollars."""
        with self._lock:
            return list(self._meter.ledger)

    # ---- what wire modules ask

    def now(self) -> float:
        """Seconds since 1970 by the simulator's clock."""
        return self._clock.now()

    def models(self, api: Api) -> Sequence[Model]:
        """The models that are known of an API's provider."""
        return catalogue().of(api)

    def objects(self, name: str) -> Table:
        """What an API stores under a name."""
        return self._tables[name]

    def remember(self, stored: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep what an API stores of an answer: values by table and key."""
        with self.step():
            for name, values in stored.items():
                for key, value in values.items():
                    self._tables[name].put(key, value)

    # ---- answering

    def begin(self, request: Request) -> Exchange:
        """Decide what answers a request.

        The request uses up what it may of limits and counts, and takes its conversation one step on, whether
        or not the answer is ever delivered.
        """
        with self.step():
            conversation = self._conversations.find(request)
            number = self._conversations.next_request(conversation)
            chance = Chance(self.scenario.seed, conversation.scope, number)
            subject = conversation.subject(request.model)
            try:
                self._check_key(request)
                metered = self._meter.begin(request, self.now())
            except ApiError as error:
                manner = Manner(self.scenario.pace, chance.draw)
                known = error.kind is not ErrorKind.AUTHENTICATION
                allowance = self._meter.allowance(request, self.now()) if known else None
                exchange = Exchange(request, chance.id("request"), manner, error=error, allowance=allowance)
            else:
                exchange = self._decide(request, conversation, subject, chance, metered)
            self._capture(exchange, subject)
            if self._recorder is not None:
                self._recorder.observe(exchange)
            return exchange

    def _capture(self, exchange: Exchange, subject: Subject) -> None:
        reply, error, manner = exchange.reply, exchange.error, exchange.manner
        came: Outcome
        empty = reply is not None and exchange.label is None and manner.failure is None
        if empty or isinstance(error, _NoMatchError):
            came = Unmatched(self._closest(subject))
        else:
            came = outcome(reply, error, manner.failure, int(manner.delay_ms))
        self.captured.record(Asked.of(exchange.request, subject), self.now(), exchange.label, came)

    def _closest(self, subject: Subject) -> tuple[str, ...]:
        """The rules that come closest to what none of them matches."""
        if self._near_misses is None:
            self._near_misses = NearMisses(self.scenario.responses)
        return tuple(str(near) for near in self._near_misses.closest(subject))

    def refuse(self, api: Api, error: ApiError) -> None:
        """Note a request that could not be read; it changes nothing."""
        self.captured.record(Asked(api), self.now(), None, Failed(error.kind.value, error.message))

    def _check_key(self, request: Request) -> None:
        keys = self.scenario.keys
        if keys and request.key not in keys:
            raise ApiError(ErrorKind.AUTHENTICATION, "Invalid API key")

    def _decide(
        self,
        request: Request,
        conversation: Conversation,
        subject: Subject,
        chance: Chance,
        metered: Metered,
    ) -> Exchange:
        failure = self._failing.in_general(conversation)
        # What fails before the model has its turn leaves the script where it is.
        advances = failure is None or KINDS[failure.type].spoils
        scripted = self._stepping.advance(subject, conversation) if advances else Scripted()
        own = scripted.failure
        if failure is None and own and self._failing.occurs(conversation, f"{scripted.label}.failure", own):
            failure = own
        response = scripted.response or Response()
        pace = response.pace or self.scenario.pace
        error = None if failure is None else refusal(failure, stream=request.stream)
        if failure is None and scripted.label is None and request.api is not Api.IN_PROCESS:
            error = _NoMatchError(self._closest(subject))
        reply = None
        if error is None:
            reply = compose(
                request,
                response,
                failure,
                chance=chance,
                created=self.now(),
                size=pace.tokens_per_chunk,
                counted=metered.usage,
            )
        else:
            metered.abandoned()
        if advances:
            self._stepping.move(conversation, scripted.position, reply, failure)
        return Exchange(
            request=request,
            id=chance.id("request"),
            manner=Manner(pace, chance.draw, response.delay_ms, failure),
            label=scripted.label,
            reply=reply,
            error=error,
            allowance=metered.allowance(self.now()),
            started=self._moment(metered.started),
            finished=self._end(metered),
            abandoned=self._moment(metered.abandoned),
        )

    def _moment(self, told: Callable[[float], None]) -> Callable[[], None]:
        def tell() -> None:
            with self.step():
                told(self.now())

        return tell

    def _end(self, metered: Metered) -> Callable[[Sequence[Block]], None]:
        def tell(answer: Sequence[Block]) -> None:
            with self.step():
                metered.finished(self.now(), answer)

        return tell


class _NoMatchError(ApiError):
    """No rule matches, and there is nothing to answer by default."""

    def __init__(self, closest: Sequence[str]) -> None:
        message = "no rule of the script matches this prompt, and the script has no default_response"
        if closest:
            message += f"; near misses: {' | '.join(closest)}"
        super().__init__(ErrorKind.INVALID_REQUEST, message)
