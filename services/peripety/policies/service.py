"""PolicyService: one handler per RPC."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety.answering.recording import Recorder
from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceServicer
from peripety.errors import InvalidArgumentError, PeripetyError, SpecError
from peripety.gateway.streams import following
from peripety.policies.analysis.differences import difference
from peripety.policies.analysis.issues import analyze
from peripety.policies.deciding import decisions, placed
from peripety.policies.directing.covering import cover
from peripety.policies.messages import asked, events, meaning, orders, parts, reports, stored
from peripety.policies.messages import decisions as batches
from peripety.policies.model import Covered
from peripety.policies.mutating.mutating import mutate, score
from peripety.policies.verifying.verifying import verify
from peripety.requests import require

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.answering.log import RequestLog
    from peripety.errors import Finding
    from peripety.policies.cached import CachedCompiler
    from peripety.policies.model import TestScenario
    from peripety.policies.sources import Sources
    from peripety.policies.store import PolicyStore
    from peripety.quality import Mutant
    from peripety.sim import Policy
    from peripety.workers import Workers

__all__ = ["PolicyServicer"]

_LAST = frozenset({"compiled", "failed"})
_EXAMPLES = 50
_MOST_EXAMPLES = 1_000


class PolicyServicer(PolicyServiceServicer):
    """gRPC servicer of policies; undefined calls return UNIMPLEMENTED.

    Args:
        compiler: the caching policy compiler.
        store: the store of compiled policies.
        sources: resolves the policy of a request.
        requests: the idempotency log of requests.
        workers: the worker pool for long computations.
    """

    def __init__(
        self,
        compiler: CachedCompiler,
        store: PolicyStore,
        sources: Sources,
        requests: RequestLog,
        workers: Workers,
    ) -> None:
        self._compiler = compiler
        self._store = store
        self._sources = sources
        self._record = Recorder(requests, _LAST)
        self._workers = workers

    def CompilePolicy(  # noqa: N802 - the contract's name
        self, request: pb.CompilePolicyRequest, _context: Any
    ) -> AsyncIterator[pb.CompilePolicyResponse]:
        """Write rules and scenarios from a written policy, and store them."""
        compiled = self._compiler.compile(orders.order(request), request.policy_id or None)
        return self._record.answers(request, compiled, events.compile_response, pb.CompilePolicyResponse)

    async def VerifyPolicy(  # noqa: N802 - the contract's name
        self, request: pb.VerifyPolicyRequest, _context: Any
    ) -> pb.VerifyPolicyResponse:
        """Run scenarios against rules."""
        try:
            policy, suite = await self._measured(request)
        except SpecError as error:
            return pb.VerifyPolicyResponse(findings=parts.findings(error.findings))
        report = await self._workers.run(verify, policy, suite, mutation=request.mutation)
        return pb.VerifyPolicyResponse(verification=reports.verification(report))

    async def AnalyzePolicy(  # noqa: N802 - the contract's name
        self, request: pb.AnalyzePolicyRequest, _context: Any
    ) -> pb.AnalyzePolicyResponse:
        """Find rules without effect."""
        try:
            policy = await self._sources.policy(asked.policy_source(request.policy))
        except SpecError as error:
            return pb.AnalyzePolicyResponse(findings=parts.findings(error.findings))
        return meaning.issues(await self._workers.run(analyze, policy))

    async def DiffPolicies(  # noqa: N802 - the contract's name
        self, request: pb.DiffPoliciesRequest, _context: Any
    ) -> pb.DiffPoliciesResponse:
        """Find requests that two policies decide differently."""
        require(request.max_examples >= 0, ".max_examples", f"must not be negative; 0 means {_EXAMPLES}")
        most = min(request.max_examples or _EXAMPLES, _MOST_EXAMPLES)
        policies: list[Policy] = []
        wrong: list[Finding] = []
        for name, source in (("before", request.before), ("after", request.after)):
            meant = asked.policy_source(source, f".{name}")
            try:
                policies.append(await self._sources.policy(meant, f".{name}"))
            except SpecError as error:
                wrong += [replace(finding, path=f"/{name}{finding.path}") for finding in error.findings]
        if wrong:
            return pb.DiffPoliciesResponse(findings=parts.findings(wrong))
        before, after = policies
        return meaning.difference(await self._workers.run(difference, before, after, max_examples=most))

    async def RunMutationTests(  # noqa: N802 - the contract's name
        self, request: pb.RunMutationTestsRequest, _context: Any
    ) -> AsyncIterator[pb.RunMutationTestsResponse]:
        """Run mutation tests: change rules in small ways, and count the changes that scenarios detect."""
        response = pb.RunMutationTestsResponse
        try:
            policy, suite = await self._measured(request)
        except SpecError as error:
            scored = response.Scored(findings=parts.findings(error.findings))
            yield response(sequence=1, scored=scored)
            return
        done: list[Mutant] = []
        sequence = 0
        blocks = await self._workers.run(mutate, policy, suite, tuple(request.operators))
        async with following(self._workers.each(blocks)) as mutating:
            async for block in mutating:
                done += block.mutants
                for mutants in reports.mutants(block):
                    sequence += 1
                    yield response(sequence=sequence, mutants=mutants)
        scored = response.Scored(score=reports.mutation_score(score(done)))
        yield response(sequence=sequence + 1, scored=scored)

    async def GenerateCoverageScenarios(  # noqa: N802 - the contract's name
        self, request: pb.GenerateCoverageScenariosRequest, _context: Any
    ) -> AsyncIterator[pb.GenerateCoverageScenariosResponse]:
        """Generate scenarios for coverage gaps."""
        response = pb.GenerateCoverageScenariosResponse
        require(request.max_scenarios >= 0, ".max_scenarios", "must not be negative; 0 means no limit")
        try:
            policy, suite = await self._measured(request)
        except SpecError as error:
            covered = response.Covered(findings=parts.findings(error.findings))
            yield response(sequence=1, covered=covered)
            return
        sequence = 0
        made = cover(policy, suite, request.max_scenarios)
        async with following(self._workers.each(made)) as covering:
            async for one in covering:
                sequence += 1
                if isinstance(one, Covered):
                    yield response(sequence=sequence, covered=reports.covered(one))
                else:
                    yield response(sequence=sequence, scenario=parts.scenario(one))

    async def Decide(  # noqa: N802 - the contract's name
        self, request: pb.DecideRequest, _context: Any
    ) -> pb.DecideResponse:
        """Decide one request."""
        policy = await self._sources.policy(asked.policy_source(request.policy))
        call = asked.tool_request(request.request)
        (outcome,) = await decisions(policy, [call], request.request.ByteSize())
        if isinstance(outcome, PeripetyError):
            raise outcome
        return pb.DecideResponse(result=parts.decision_result(outcome))

    async def DecideMany(  # noqa: N802 - the contract's name
        self, requests: AsyncIterator[pb.DecideManyRequest], _context: Any
    ) -> AsyncIterator[pb.DecideManyResponse]:
        """Decide many requests, message by message, with back-pressure on the client."""
        policy = None
        sequence = 0
        async for request in requests:
            if policy is None:
                policy = await self._sources.policy(asked.policy_source(request.policy))
            items = batches.items(request)
            outcomes = await decisions(policy, [call for _, call in items], request.ByteSize())
            names = (name for name, _ in items)
            for response in batches.responses(zip(names, outcomes, strict=True)):
                response.sequence = sequence = sequence + 1
                yield response

    async def GetPolicy(  # noqa: N802 - the contract's name
        self, request: pb.GetPolicyRequest, _context: Any
    ) -> pb.GetPolicyResponse:
        """Read a stored policy."""
        require(request.policy_id, ".policy_id", "is required")
        kept = await self._store.get(request.policy_id, request.policy_hash or None)
        return pb.GetPolicyResponse(policy=stored.policy(kept))

    async def ListPolicies(  # noqa: N802 - the contract's name
        self, request: pb.ListPoliciesRequest, _context: Any
    ) -> pb.ListPoliciesResponse:
        """List stored policies."""
        page = await self._store.policies(request.page_size, request.page_token)
        return pb.ListPoliciesResponse(policies=stored.summaries(page), next_page_token=page.next_page_token)

    async def DeletePolicy(  # noqa: N802 - the contract's name
        self, request: pb.DeletePolicyRequest, _context: Any
    ) -> pb.DeletePolicyResponse:
        """Delete a stored policy."""
        require(request.policy_id, ".policy_id", "is required")
        await self._record.change_once(request, partial(self._store.delete, request.policy_id))
        return pb.DeletePolicyResponse()

    async def _measured(
        self,
        request: pb.VerifyPolicyRequest | pb.RunMutationTestsRequest | pb.GenerateCoverageScenariosRequest,
    ) -> tuple[Policy, tuple[TestScenario, ...]]:
        """Return the rules and scenarios of a request, after validation by the engine."""
        source, scenarios = asked.policy_source(request.policy), asked.scenarios(request.scenarios)
        policy = await self._sources.policy(source)
        if not scenarios:
            return policy, await self._sources.suite(source)
        try:
            await self._workers.run(policy.prepare, [scenario.request for scenario in scenarios])
        except InvalidArgumentError as error:
            raise placed(error, ".scenarios[{}].request") from None
        return policy, scenarios
