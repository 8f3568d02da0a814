"""llmsim on a free port, scripts written during a run, calls of wire modules."""

from __future__ import annotations

import json
import random
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.engine.patterns.syntax import Pattern, TextKind, TextPattern
from peripety.llmsim.provider_rules.models import load_models
from peripety.llmsim.script.files import load_script, parse_script
from peripety.llmsim.script.types import Fault, Script, ScriptResponse, ScriptRule, ScriptTurn
from peripety.llmsim.server.runner import serve_in_thread
from peripety.llmsim.simulator import Simulator
from peripety.llmsim.state import StateTable
from peripety.llmsim.types import (
    Api,
    BilledUsage,
    SimMessage,
    SimReply,
    SimRequest,
    SimRole,
    SimStopReason,
    TextPart,
)
from peripety.llmsim.wire.base import HttpCall, WireOperation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.llmsim.provider_rules.models import SimModel
    from peripety.llmsim.script_engine import Exchange
    from peripety.llmsim.types import ReplyPart
    from peripety.llmsim.wire.base import Wire


class Gate:
    """A gate on the way of the requests to a scripted LLM, which holds one of them until it is opened.

    Args:
        closed_at: the number of the request that waits, from 1; 0 for none.

    Attributes:
        reached: set when that request arrives.
        opened: set to let it pass.
    """

    def __init__(self, closed_at: int) -> None:
        self._left = closed_at
        self.reached = threading.Event()
        self.opened = threading.Event()

    def wait(self) -> None:
        """Count a request, and wait if it is the one."""
        self._left -= 1
        if self._left == 0:
            self.reached.set()
            self.opened.wait(timeout=60)


class Answering(Simulator):
    """A scripted LLM whose script is a function of each request; protocols, tokens and caches are real.

    Args:
        answer: returns the answer to a request. It is called for one request at a time.

    Attributes:
        requests: all requests, whole.
    """

    def __init__(self, answer: Callable[[SimRequest], ScriptResponse]) -> None:
        super().__init__(Script())
        self.requests: list[SimRequest] = []
        self._answer = answer

    def begin(self, request: SimRequest) -> Exchange:
        with self.transaction():
            self.requests.append(request)
            self.reload(Script(default_response=self._answer(request)))
            return super().begin(request)


WORDS = ("alpha", "beta", "gamma", "delta", "omega")
ANY = Pattern()


def has(word: str) -> Pattern:
    return Pattern(TextPattern(TextKind.CONTAINS, word))


SCENARIO = Script(
    responses=(
        ScriptRule(
            has("alpha"),
            ScriptResponse("0"),
            turns=(
                ScriptTurn(ANY, ScriptResponse("0.0")),
                ScriptTurn(has("beta"), ScriptResponse("0.1")),
                ScriptTurn(ANY, ScriptResponse("0.2")),
            ),
        ),
        ScriptRule(has("beta"), ScriptResponse("1"), max_matches=2),
        ScriptRule(
            has("gamma"),
            ScriptResponse("2"),
            max_matches=3,
            turns=(
                ScriptTurn(has("gamma"), failure=Fault("auth_error", {"message": "no"})),
                ScriptTurn(ANY, ScriptResponse("2.1")),
            ),
        ),
        ScriptRule(
            has("delta"),
            failure=Fault("out_of_credits", {"message": "no"}, times=1),
            response=ScriptResponse("3"),
        ),
    ),
    default_response=ScriptResponse("default"),
)


@dataclass
class Conversation:
    """One conversation: its messages, and the next answer by a plain implementation of the rules."""

    name: str
    named: bool
    said: tuple[SimMessage, ...] = ()
    counts: dict[int, int] = field(default_factory=dict)
    failures: dict[int, int] = field(default_factory=dict)
    active: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        # Conversations without a name are distinguished by their beginnings.
        self.said = (SimMessage(SimRole.USER, self.name), SimMessage(SimRole.ASSISTANT, "default"))

    def request(self, prompt: str) -> SimRequest:
        """Return the next request: a named conversation sends only what is new, another repeats
        everything.
        """
        new = SimMessage(SimRole.USER, prompt)
        messages = (new,) if self.named else (*self.said, new)
        return SimRequest(
            Api.OPENAI_CHAT,
            "m",
            messages,
            key="k",
            conversation=self.name if self.named else None,
        )

    def expected(self, prompt: str) -> str | None:
        """Return the answer by a naive reading of the rules; None is an error."""
        rules = SCENARIO.responses
        if self.active is not None:
            rule, turn = self.active
            step = rules[rule].turns[turn]
            if step.expect.text.text in prompt:
                self.active = (rule, turn + 1) if turn + 1 < len(rules[rule].turns) else None
                return step.response.text if step.failure is None and step.response else None
            self.active = None
        for index, entry in enumerate(rules):
            limit = entry.max_matches
            if entry.pattern.text.text not in prompt or (
                limit is not None and self.counts.get(index, 0) >= limit
            ):
                continue
            self.counts[index] = self.counts.get(index, 0) + 1
            self.active = (index, 0) if entry.turns else None
            if entry.failure is not None:
                self.failures[index] = self.failures.get(index, 0) + 1
                if self.failures[index] == 1:
                    return None
            return entry.response.text if entry.response else None
        return "default"

    def heard(self, request: SimRequest, answer: str | None) -> None:
        """Record the messages of a call; a failed call adds none."""
        if answer is not None:
            self.said = (*self.said, request.messages[-1], SimMessage(SimRole.ASSISTANT, answer))


def ask(simulator: Simulator, request: SimRequest) -> tuple[str | None, str]:
    """The text of an answer, None for an error; and all of it, for comparing transcripts."""
    exchange = simulator.begin(request)
    exchange.on_started()
    exchange.on_finished(())
    if exchange.reply is None:
        return None, f"{exchange.id} {exchange.error!r}"
    text = "".join(part.text for part in exchange.reply.parts if isinstance(part, TextPart))
    return text, f"{exchange.id} {exchange.reply}"


def converse(
    simulator: Simulator,
    *,
    conversations: int,
    operations: int,
    seed: int,
    on_step: Callable[[int], None] = lambda _: None,
) -> None:
    """Run steps of several concurrent conversations in random order.

    Args:
        simulator: plays `SCENARIO`.
        conversations: number of concurrent conversations; a long one ends and a new one begins.
        operations: number of steps.
        seed: makes the steps repeatable.
        on_step: receives the number of steps after each step.

    Raises:
        AssertionError: an answer does not belong to its conversation.
    """
    chance = random.Random(seed)
    all_of_them = [Conversation(f"c{number}", named=number % 2 == 0) for number in range(conversations)]
    for done in range(1, operations + 1):
        number = chance.randrange(conversations)
        conversation = all_of_them[number]
        prompt = " ".join(chance.choices(WORDS, k=chance.randint(1, 2)))
        request = conversation.request(prompt)
        expected = conversation.expected(prompt)
        heard, _ = ask(simulator, request)
        assert heard == expected, (conversation, prompt)
        conversation.heard(request, heard)
        if len(conversation.said) > 20:
            all_of_them[number] = Conversation(f"{conversation.name}'", named=conversation.named)
        on_step(done)


@dataclass(frozen=True)
class Served:
    """A simulator and the base URL of its providers."""

    url: str
    simulator: Simulator

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def served(scenario: Script | Path | str, **options: Any) -> Iterator[Served]:
    """Serve a scenario: a value, a file, or the text of a TOML file; the options are the `Simulator`'s."""
    if isinstance(scenario, Path):
        scenario = load_script(scenario)
    elif isinstance(scenario, str):
        scenario = parse_script(scenario)
    simulator = Simulator(scenario, **options)
    try:
        with serve_in_thread(simulator) as server:
            yield Served(server.url, simulator)
    finally:
        simulator.close()


NOW = 1_767_225_600.0  # 2026-01-01


class FakeService:
    """A service with the known models, a fixed clock, and its own tables."""

    def __init__(self) -> None:
        self._tables: dict[str, StateTable] = {}

    def now(self) -> float:
        return NOW

    def models(self, api: Api) -> Sequence[SimModel]:
        return load_models().models_of(api)

    def objects(self, name: str) -> StateTable:
        return self._tables.setdefault(name, StateTable())


def call(
    wire: Wire,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    *,
    name: str | None = None,
    params: Mapping[str, str] | None = None,
) -> HttpCall:
    """Return a call of a wire's route: of the named one, or of the first that generates an answer."""
    route = next(
        route
        for route in wire.routes
        if (route.operation is WireOperation.GENERATE if name is None else route.name == name)
    )
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return HttpCall(route, headers or {}, params or {}, data)


def reply(
    *parts: ReplyPart,
    model: str = "test-model",
    stop: SimStopReason = SimStopReason.END,
    usage: BilledUsage | None = None,
    stop_sequence: str | None = None,
    id_: str = "0123456789abcdef01234567",
) -> SimReply:
    """An answer made of these parts."""
    counted = BilledUsage(fresh=10, output=5) if usage is None else usage
    return SimReply(id_, NOW, model, parts, stop, counted, stop_sequence)
