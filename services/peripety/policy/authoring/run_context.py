"""Context of an authoring run: order, budgeted gateway, audit log, warnings, progress, and cached artifacts.

Tools are divided into batches, and batches run in parallel. The budgeted gateway limits the
concurrency and the budget of all model calls. The output of a model is cached by the fingerprint of its
inputs, prompts, schema and model.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from peripety.core.concurrency import closing, shield_until_done
from peripety.errors import PeripetyError, ResourceExhaustedError
from peripety.gateway.budgets.order_budget import OrderBudget
from peripety.gateway.structured_output.validator import was_truncated
from peripety.gateway.types.response import Completed, UsageTotal, collect_completion
from peripety.policy.authoring.prompts import (
    answer_schema,
    load_prompts,
    prompt_material,
    scenario_to_document,
)
from peripety.policy.events import CompileProgress
from peripety.policy.types import AuditEntry, CompilePhase
from peripety.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence

    from peripety.engine.policies.types import ToolRequest
    from peripety.errors import Finding
    from peripety.gateway.types.request import Budget, GenerateRequest
    from peripety.gateway.types.response import Completion, GatewayEvent, ModelGateway
    from peripety.policy.types import (
        AnnotatedTool,
        CompileOrder,
        DiscardedScenario,
        Judgement,
        RulePatch,
        ScenarioCorrection,
    )


class ArtifactCache(Protocol):
    """Cache of model output by key. Entries may be lost at any time."""

    async def get(self, key: str) -> bytes | None:
        """Return the value of a key, or None."""
        ...

    async def put(self, key: str, value: bytes) -> None:
        """Store a value under a key and replace an earlier one."""
        ...


class InMemoryArtifactCache:
    """In-memory cache for the lifetime of the process."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    async def get(self, key: str) -> bytes | None:
        """Return the value of a key, or None."""
        return self._values.get(key)

    async def put(self, key: str, value: bytes) -> None:
        """Store a value under a key and replace an earlier one."""
        self._values[key] = value


def digest_key(*parts: Any) -> str:
    """Return a hex digest of JSON values and of the program version."""
    text = json.dumps([__version__, *parts], sort_keys=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def order_fingerprint(order: CompileOrder) -> str:
    """Return a digest of all inputs of an order, except for the default model.

    The budget is left out, because a result with a smaller budget is equally valid.
    """
    limits = asdict(order.limits)
    del limits["budget"]
    options = [order.replace_corrected, order.directed, order.mutation, order.model, order.allow_partial]
    handwritten = [*map(scenario_to_document, order.handwritten)]
    return digest_key(
        prompt_material(order, order.tools),
        handwritten,
        limits,
        options,
        load_prompts(),
        answer_schema(order.tools),
    )


T = TypeVar("T")

_TOO_LONG_CODES = frozenset({"CONTEXT_LENGTH_EXCEEDED"})


@dataclass(frozen=True, slots=True, eq=False)
class ToolBatch:
    """Tools that share a prompt, with different names. Batches compare by identity.

    Attributes:
        tools: the tools, at least one.
        is_complete: True if their servers have no other tools.
    """

    tools: tuple[AnnotatedTool, ...]
    is_complete: bool

    @property
    def server_names(self) -> tuple[str, ...]:
        """The servers."""
        return tuple(dict.fromkeys(tool.server_name for tool in self.tools))

    @property
    def name(self) -> str:
        """The display name."""
        servers = ", ".join(self.server_names)
        if self.is_complete:
            return servers
        return f"{servers} ({self.tools[0].tool_name} to {self.tools[-1].tool_name})"

    def contains(self, request: ToolRequest) -> bool:
        """Return True if a request calls one of the tools."""
        names = ((tool.server_name, tool.tool_name) for tool in self.tools)
        return (request.server_name, request.tool_name) in names

    def servers_of(self, tool_names: Iterable[str] | None) -> list[str]:
        """Return the servers of some tools; of all tools for None, or if none of them is in the batch."""
        wanted = None if tool_names is None else {*tool_names}
        named = (tool.server_name for tool in self.tools if wanted is None or tool.tool_name in wanted)
        return [*dict.fromkeys(named)] or [*self.server_names]

    def split(self) -> tuple[ToolBatch, ToolBatch]:
        """Split the batch in two."""
        middle = (len(self.tools) + 1) // 2
        return ToolBatch(self.tools[:middle], is_complete=False), ToolBatch(
            self.tools[middle:],
            is_complete=False,
        )


def split_batches(tools: Iterable[AnnotatedTool], max_tools: int) -> tuple[ToolBatch, ...]:
    """Group tools by server, in order of first appearance, into batches of at most `max_tools` tools.

    Whole servers share a batch if their tools have different names, because rules name tools without servers.
    """
    of_server: dict[str, list[AnnotatedTool]] = {}
    for tool in tools:
        of_server.setdefault(tool.server_name, []).append(tool)
    batches: list[ToolBatch] = []
    for own in of_server.values():
        if batches and batches[-1].is_complete and len(own) + len(batches[-1].tools) <= max_tools:
            joined = (*batches[-1].tools, *own)
            if len({tool.tool_name for tool in joined}) == len(joined):
                batches[-1] = ToolBatch(joined, is_complete=True)
                continue
        batches += (
            ToolBatch(tuple(own[start : start + max_tools]), is_complete=len(own) <= max_tools)
            for start in range(0, len(own), max_tools)
        )
    return tuple(batches)


async def request_in_halves(
    batch: ToolBatch,
    request: Callable[[ToolBatch], Awaitable[T]],
) -> list[tuple[ToolBatch, T]]:
    """Request a response for a batch; if it does not fit, split the batch in halves and repeat.

    Raises:
        PeripetyError: as raised by `request`, except for truncated responses about more than one tool.
    """
    try:
        return [(batch, await request(batch))]
    except PeripetyError as error:
        if len(batch.tools) == 1 or not (was_truncated(error) or error.code in _TOO_LONG_CODES):
            raise
    return [one for half in batch.split() for one in await request_in_halves(half, request)]


async def run_concurrently(
    work: Sequence[Coroutine[Any, Any, T]],
) -> AsyncIterator[tuple[int, T | PeripetyError]]:
    """Run coroutines concurrently; a failure does not cancel the others.

    When the iteration ends for any reason, all of them are finished or cancelled.

    Yields:
        The index of each coroutine when it is done, with its result or its error.
    """
    done: asyncio.Queue[asyncio.Task[T]] = asyncio.Queue()
    numbers = {asyncio.ensure_future(piece): number for number, piece in enumerate(work)}
    for task in numbers:
        task.add_done_callback(done.put_nowait)
    try:
        for _ in work:
            task = await done.get()
            try:
                result: T | PeripetyError = task.result()
            except PeripetyError as error:
                result = error
            yield numbers[task], result
    finally:
        for task in numbers:
            task.cancel()
        await shield_until_done(asyncio.gather(*numbers, return_exceptions=True))


ENGINE_ACTOR = "engine"

_RESPONSE_ERROR_CODES = frozenset({"ANSWER_INVALID", "ANSWER_REFUSED", "CONTEXT_LENGTH_EXCEEDED"})


class RunFailedError(Exception):
    """The run ends without a result; the findings state the reasons."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__()
        self.findings = findings


@dataclass
class RunContext:
    """Shared state of a run.

    Attributes:
        order: the order.
        gateway: the model gateway, limited to the budget.
        artifacts: the cache of model output.
        round: the repair round, from 1; 0 before the first.
        audit: all decisions so far.
        warnings: warnings for the author of the policy.
    """

    order: CompileOrder
    gateway: BudgetedGateway
    artifacts: ArtifactCache
    round: int = 0
    audit: list[AuditEntry] = field(default_factory=list)
    warnings: dict[Finding, None] = field(default_factory=dict)
    _max_fraction: float = 0.0

    def record_decision(
        self,
        actor: str,
        decision: ScenarioCorrection | DiscardedScenario | RulePatch | Judgement,
    ) -> AuditEntry:
        """Add a decision to the audit log."""
        entry = AuditEntry(self.round, actor, decision, time.time())
        self.audit.append(entry)
        return entry

    def add_warning(self, finding: Finding) -> None:
        """Add a warning once."""
        self.warnings[finding] = None

    def make_progress(self, phase: CompilePhase, message: str, share: float = 0.0) -> CompileProgress:
        """Return a progress event; `share` is the completed share of the phase."""
        begin, end = self._phase_share(phase)
        self._max_fraction = max(self._max_fraction, begin + (end - begin) * share)
        return CompileProgress(phase, self.round, message, self._max_fraction)

    def _phase_share(self, phase: CompilePhase) -> tuple[float, float]:
        """Return the start and end of a phase as shares of the run."""
        fixed = {
            CompilePhase.RULES: (0.0, 0.25),
            CompilePhase.SCENARIOS: (0.25, 0.45),
            CompilePhase.FILTERING: (0.45, 0.45),
            CompilePhase.MEASURING: (0.85, 0.98),
            CompilePhase.STORING: (0.98, 1.0),
        }
        if phase in fixed:
            return fixed[phase]
        length = 0.4 / (self.order.limits.repairs + 1)
        begin = 0.45 + min(self.round, self.order.limits.repairs) * length
        steps = {CompilePhase.VERIFYING: 0, CompilePhase.JUDGING: 1, CompilePhase.REPAIRING: 2}
        step = steps[phase] * length / 3
        return begin + step, begin + step + length / 3


def model_actor(model: str) -> str:
    """Return the actor name of a model in the audit log."""
    return f"model:{model}"


def is_response_error(error: PeripetyError) -> bool:
    """Return True if a call failed because of the content of the response."""
    return error.code in _RESPONSE_ERROR_CODES


_MAX_CONCURRENT_CALLS = 8


class OrderBudgetError(ResourceExhaustedError):
    """The budget of one order is exhausted; another budget raises a plain `ResourceExhaustedError`."""


class BudgetedGateway:
    """Gateway that charges every call to the budget of one order.

    If calls, tokens or cost are limited, calls run one at a time, because the remaining budget is only known
    after a response.

    Args:
        gateway: the underlying gateway.
        budget: the budget of all calls together.
        parallel: the maximum number of concurrent calls.
    """

    def __init__(self, gateway: ModelGateway, budget: Budget, parallel: int = _MAX_CONCURRENT_CALLS) -> None:
        self._gateway = gateway
        self._budget = OrderBudget(budget)
        is_capped = any(cap is not None for cap in (budget.max_calls, budget.max_tokens, budget.max_cost))
        self._slots = asyncio.Semaphore(1 if is_capped else parallel)

    @property
    def usage(self) -> UsageTotal:
        """The usage of all calls."""
        return self._budget.spent

    @property
    def is_time_over(self) -> bool:
        """True if the time limit of the order is reached."""
        return self._budget.is_expired

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        """Stream a response within the remaining budget.

        Raises:
            OrderBudgetError: the budget of the order is exhausted (code BUDGET_EXHAUSTED).
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        async with self._slots:
            used_up = self._budget.find_exhausted_limit()
            if used_up is not None:
                raise _budget_exhausted_error(used_up)
            question = replace(request, budget=self._budget.remaining())
            try:
                async with closing(self._gateway.stream(question)) as events:
                    async for event in events:
                        if isinstance(event, Completed):
                            self._budget.add_usage(UsageTotal.from_completion(event.completion))
                        yield event
            except PeripetyError as error:
                used_up = self._budget.add_failed_usage(error)
                if used_up is None:
                    raise
                raise _budget_exhausted_error(used_up) from error

    async def generate(self, request: GenerateRequest) -> Completion:
        """Return the complete response; see `stream`."""
        return await collect_completion(self.stream(request))


def _budget_exhausted_error(finding: Finding) -> OrderBudgetError:
    return OrderBudgetError(finding.message, code=finding.code)
