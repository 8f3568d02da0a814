/** Client: typed stubs of all services behind one address, and what a game needs on top of them. */

import type { DescService, MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, type Client as Stub, Code, ConnectError, type Transport } from "@connectrpc/connect";
import { validateDocuments, type SpecDocument } from "./batch.js";
import { type ConnectOptions, createStub, withPolicies } from "./calls.js";
import { AgentService } from "./gen/peripety/api/agent/v1/agent_pb.js";
import { GatewayService } from "./gen/peripety/api/gateway/v1/gateway_pb.js";
import { ApprovalService, PolicyService } from "./gen/peripety/api/policy/v1/policy_pb.js";
import { ScenarioService, type SpecVerdict, type ValidationOptionsSchema } from "./gen/peripety/api/scenario/v1/scenario_pb.js";
import {
  type ImportSessionRequestSchema,
  type Session,
  SessionService,
  type TurnEvent,
  type WatchSessionRequestSchema,
  type WatchSessionResponse,
} from "./gen/peripety/api/session/v1/session_pb.js";
import { TestGenService } from "./gen/peripety/api/testgen/v1/testgen_pb.js";
import { newRequestId } from "./request_id.js";
import { followWork, playTurn, watchSession, type PlayedSession, type StreamOptions, type TurnInput } from "./streams.js";

/** Stubs of every service over one connection, and streams that continue after a lost connection. */
export class Client {
  /** Language models. */
  readonly gateway: Stub<typeof GatewayService>;
  /** Runs of phases over one conversation. */
  readonly agents: Stub<typeof AgentService>;
  /** Calls that wait for a person; connect to the enforcement point, with its token. */
  readonly approvals: Stub<typeof ApprovalService>;
  /** Scenarios from texts. */
  readonly scenarios: Stub<typeof ScenarioService>;
  /** Sessions of scenarios. */
  readonly sessions: Stub<typeof SessionService>;
  /** Policies from written rules, and their decisions. */
  readonly policies: Stub<typeof PolicyService>;
  /** Generated and evaluated tests. */
  readonly tests: Stub<typeof TestGenService>;
  readonly #closed = new AbortController();
  readonly #close: () => void;

  /**
   * @param transport - any transport of Connect; `connect` makes one.
   * @param options - token and headers of every call.
   * @param close - closes the connection of the transport.
   */
  constructor(transport: Transport, options: ConnectOptions = {}, close: () => void = () => {}) {
    const calls = withPolicies(transport, options, this.#closed.signal);
    const stub = <Service extends DescService>(service: Service): Stub<Service> =>
      createStub(service, calls, this.#closed.signal);
    this.gateway = stub(GatewayService);
    this.agents = stub(AgentService);
    this.approvals = stub(ApprovalService);
    this.scenarios = stub(ScenarioService);
    this.sessions = stub(SessionService);
    this.policies = stub(PolicyService);
    this.tests = stub(TestGenService);
    this.#close = close;
  }

  /**
   * Play one turn, and yield its events. The last one is `committed`, or `ruleFailed` with `turnAbandoned`.
   *
   * After a lost connection the turn continues with the same request id, so it is played once. An event arrives once.
   * If the attempt before had no effect, `accepted` arrives again: discard the earlier events of the turn.
   *
   * Behind `committed`, `session` has the new turn, status, hashes and legal actions; `session.state` is not updated.
   *
   * @throws PeripetyError - the turn was refused, or the connection did not return.
   */
  play(session: PlayedSession, turn: TurnInput = {}): AsyncGenerator<TurnEvent, void> {
    return playTurn(this.sessions, session, turn);
  }

  /**
   * Follow a session: recorded events first, then live events, without gaps. Continues after a lost connection, and
   * behind the last event received. Ends with `closed` when the run has ended or the session was deleted.
   */
  watch(
    request: MessageInitShape<typeof WatchSessionRequestSchema>,
    options: StreamOptions = {},
  ): AsyncGenerator<WatchSessionResponse, void> {
    return watchSession(this.sessions, request, options);
  }

  /**
   * Start long work, and yield its events, with `progress` among them. After a lost connection, the work continues
   * behind the last event received. If the server has no record of it, it starts again, with sequence number 1.
   *
   * @param call - method with `requestId` and `afterSequence`, such as `client.scenarios.generateScenario`.
   * @param request - its request; `requestId` is a new UUID if it is not set.
   */
  follow<Request extends { requestId?: string; afterSequence?: bigint }, Response extends { sequence: bigint }>(
    call: (request: Request, options?: CallOptions) => AsyncIterable<Response>,
    request: Request,
    options: StreamOptions = {},
  ): AsyncGenerator<Response, void> {
    return followWork(call, request, options);
  }

  /**
   * Validate many specifications over one stream, several times as fast as one call each. Documents are read as fast as
   * the server accepts them, and the server accepts them as fast as you read verdicts. Needs gRPC, and so Node.js.
   *
   * @param documents - specifications, each with an id that you choose.
   * @returns verdicts in any order; `error` is set for a document that was not reached.
   */
  validate(
    documents: Iterable<SpecDocument> | AsyncIterable<SpecDocument>,
    validation: MessageInitShape<typeof ValidationOptionsSchema> = {},
    options: Pick<StreamOptions, "signal" | "timeoutMs"> = {},
  ): AsyncGenerator<SpecVerdict, void> {
    return validateDocuments(this.scenarios, documents, validation, options);
  }

  /** Export a session with all its turns as a bundle, which `verifyTranscript` verifies. */
  async exportTranscript(sessionId: string, options?: CallOptions): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for await (const { chunk } of this.sessions.exportSession({ sessionId }, options)) parts.push(chunk);
    return new Uint8Array(await new Blob(parts as Uint8Array<ArrayBuffer>[]).arrayBuffer());
  }

  /**
   * Hand in a bundle, such as that of a game played with `@peripety/client/engine`. The server verifies it by replay, and
   * stores the session under a new id. Needs gRPC, and so Node.js.
   *
   * @throws PeripetyError - `BUNDLE_INVALID`; its violations name the first false line and turn.
   */
  async importTranscript(bundle: Uint8Array, options?: CallOptions): Promise<Session> {
    const { session } = await this.sessions.importSession(importRequests(bundle), options);
    return session!;
  }

  /** Close the connection. Running and later calls fail as cancelled. Nothing of the client keeps Node.js alive. */
  close(): void {
    this.#closed.abort(new ConnectError("the client is closed", Code.Canceled));
    this.#close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

const CHUNK_BYTES = 256 * 1024;

async function* importRequests(bundle: Uint8Array): AsyncGenerator<MessageInitShape<typeof ImportSessionRequestSchema>> {
  yield { requestId: newRequestId() };
  for (let start = 0; start < bundle.length; start += CHUNK_BYTES) {
    yield { chunk: bundle.subarray(start, start + CHUNK_BYTES) };
  }
}
