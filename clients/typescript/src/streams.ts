/** Streams that continue after a lost connection: turns, watched sessions, long work. */

import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, type CallOptions, type Client as Stub } from "@connectrpc/connect";
import { backoff, configOf, linkedController, parseDuration, sleep } from "./calls.js";
import { PeripetyError } from "./errors.js";
import type { ActionCallSchema } from "./gen/peripety/api/common/v1/engine_pb.js";
import { SessionService } from "./gen/peripety/api/session/v1/session_pb.js";
import type {
  Session,
  TurnEvent,
  TurnEvent_Committed,
  WatchSessionRequestSchema,
  WatchSessionResponse,
} from "./gen/peripety/api/session/v1/session_pb.js";
import { newRequestId } from "./request_id.js";

type Sessions = Stub<typeof SessionService>;

/** Options of every stream that continues after a lost connection. */
export interface StreamOptions {
  /** Cancels the stream. */
  readonly signal?: AbortSignal;
  /** Deadline of the stream and of its continuations together, in milliseconds. The default is in the service config. */
  readonly timeoutMs?: number;
  /**
   * Longest silence before the connection counts as lost, in milliseconds. None by default: over gRPC, pings detect a
   * dead connection, and a turn may take minutes without an event.
   */
  readonly silenceMs?: number;
  /** Number of failed attempts in a row, without an event in between, before the stream fails. 10 by default. */
  readonly maxAttempts?: number;
  /** Called before each continuation, with the cause. */
  readonly onReconnect?: (error: PeripetyError) => void;
}

/** A turn to play. */
export interface TurnInput extends StreamOptions {
  /** Actions in order, at most 16. Without actions and input, only the world is resolved. */
  readonly actions?: readonly MessageInitShape<typeof ActionCallSchema>[];
  /** Words of the player. */
  readonly input?: string;
  /** UUID of the turn; a new one by default. Set it to play the same turn again after a restart of your program. */
  readonly requestId?: string;
  /** Entity whose point of view is streamed; that of the session by default. */
  readonly povEntityId?: string;
  /** Seat that acts. */
  readonly seatId?: string;
}

/** What `play` reads of a session, and updates. `Session` and `CreateSessionResponse.session` have this form. */
export type PlayedSession = Pick<Session, "sessionId" | "turn"> & Partial<Omit<Session, "sessionId" | "turn">>;

/** Play one turn; see `Client.play`. */
export async function* playTurn(
  sessions: Sessions,
  session: PlayedSession,
  { actions = [], input = "", requestId = newRequestId(), povEntityId, seatId = "", ...options }: TurnInput,
): AsyncGenerator<TurnEvent, void> {
  const request = {
    sessionId: session.sessionId,
    requestId,
    expectedTurn: session.turn + 1n,
    actions: [...actions],
    input,
    povEntityId: povEntityId ?? session.povEntityId ?? "",
    seatId,
  };
  let attemptId = "";
  let last = 0n;
  const timeoutMs = options.timeoutMs ?? (CONFIG?.timeout ? parseDuration(CONFIG.timeout) : undefined);
  yield* resumed(
    { ...options, timeoutMs },
    (call) => sessions.takeTurn(request, call),
    ({ event }) => {
      if (event === undefined) return {};
      if (event.event.case === "accepted" && event.event.value.attemptId !== attemptId) {
        attemptId = event.event.value.attemptId;
        last = 0n;
      }
      if (event.sequence <= last) return {};
      last = event.sequence;
      if (event.event.case === "committed") update(session, event, event.event.value);
      return { value: event, isLast: isEnd(event) };
    },
  );
}

const CONFIG = configOf(SessionService.method.takeTurn);

/** True for the last event of a turn: it was stored, or it was abandoned and changed nothing. */
export function isEnd({ event }: TurnEvent): boolean {
  return event.case === "committed" || (event.case === "ruleFailed" && event.value.turnAbandoned);
}

function update(session: PlayedSession, { turn, sequence }: TurnEvent, committed: TurnEvent_Committed): void {
  const { stateHash, chainHash, legalActions, nextSeatId, status } = committed;
  Object.assign(session, { turn, lastSequence: sequence, stateHash, chainHash, legalActions, nextSeatId, status });
}

/** Follow a session; see `Client.watch`. */
export async function* watchSession(
  sessions: Sessions,
  request: MessageInitShape<typeof WatchSessionRequestSchema>,
  options: StreamOptions,
): AsyncGenerator<WatchSessionResponse, void> {
  let afterSequence = request.afterSequence ?? 0n;
  let attemptId = request.attemptId ?? "";
  const isLost = ["TOO_SLOW", "SERVER_SHUTTING_DOWN"];
  yield* resumed(
    options,
    (call) => sessions.watchSession({ ...request, afterSequence, attemptId }, call),
    (response) => {
      const { event } = response;
      if (event.case === "turnEvent") {
        if (event.value.event.case === "accepted") attemptId = event.value.event.value.attemptId;
        afterSequence = event.value.sequence;
      } else if (event.case === "rewound") {
        afterSequence = event.value.sequence;
      } else if (event.case === "closed") {
        if (isLost.includes(event.value.reason)) throw lost(`server ended the stream: ${event.value.reason}`);
        return { value: response, isLast: true };
      } else if (event.case === "heartbeat") {
        return {};
      }
      return { value: response };
    },
  );
}

/** Follow long work; see `Client.follow`. */
export async function* followWork<Request extends { requestId?: string; afterSequence?: bigint }, Response extends { sequence: bigint }>(
  call: (request: Request, options?: CallOptions) => AsyncIterable<Response>,
  request: Request,
  options: StreamOptions,
): AsyncGenerator<Response, void> {
  const named = { ...request, requestId: request.requestId || newRequestId() };
  let last = request.afterSequence ?? 0n;
  const start = async function* (callOptions: CallOptions): AsyncGenerator<Response> {
    try {
      yield* call({ ...named, afterSequence: last }, callOptions);
    } catch (error) {
      // Without a record the work starts again, and so do its sequence numbers.
      if (!(error instanceof PeripetyError && error.is("WORK_NOT_FOUND")) || last === 0n) throw error;
      last = 0n;
      yield* call({ ...named, afterSequence: last }, callOptions);
    }
  };
  yield* resumed(options, start, (response) => {
    last = response.sequence;
    return { value: response };
  });
}

interface Received<T> {
  /** Value for the caller; undefined to skip the message. */
  readonly value?: T;
  /** True if the stream must not be continued behind it. */
  readonly isLast?: boolean;
}

/** Stream a call, and start it again when its connection is lost. */
async function* resumed<Message, T>(
  { signal, timeoutMs, silenceMs, maxAttempts = 10, onReconnect }: StreamOptions,
  call: (options: CallOptions) => AsyncIterable<Message>,
  receive: (message: Message) => Received<T>,
): AsyncGenerator<T, void> {
  const deadline = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
  for (let failures = 0; ; ) {
    const { controller, unlink } = linkedController(signal);
    const left = deadline === undefined ? {} : { timeoutMs: Math.max(1, deadline - Date.now()) };
    const messages = call({ signal: controller.signal, ...left })[Symbol.asyncIterator]();
    try {
      for (;;) {
        const result = await within(silenceMs, messages.next());
        if (result.done) return;
        const { value, isLast } = receive(result.value);
        if (value === undefined) continue;
        failures = 0;
        if (isLast) await within(END_MS, messages.next()).catch(() => undefined);
        yield value;
        if (isLast) return;
      }
    } catch (reason) {
      const error = PeripetyError.from(reason);
      failures += 1;
      const delay = error.retryAfterMs ?? backoff(RECONNECT, failures);
      const isLate = deadline !== undefined && Date.now() + delay >= deadline;
      if (signal?.aborted || !error.isConnectionLost || failures >= maxAttempts || isLate) throw error;
      onReconnect?.(error);
      await sleep(delay, signal);
    } finally {
      unlink();
      controller.abort(); // ends a read that waits, so that the stream can be closed
      messages.return?.().catch(() => undefined);
    }
  }
}

const RECONNECT = CONFIG?.retryPolicy ?? { initialBackoff: "0.1s", maxBackoff: "2s", backoffMultiplier: 2 };

/** Time for the server to end a stream behind its last event. */
const END_MS = 1_000;

async function within<T>(milliseconds: number | undefined, promise: Promise<T>): Promise<T> {
  if (milliseconds === undefined) return promise;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const silence = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(lost(`no message for ${milliseconds} ms`)), milliseconds);
  });
  return Promise.race([promise, silence]).finally(() => clearTimeout(timer));
}

function lost(message: string): PeripetyError {
  return new PeripetyError(message, Code.Unavailable);
}
