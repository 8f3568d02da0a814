/** Transport of every call: deadlines and retries by the service config, token, typed errors. */

import type { DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import { type CallOptions, type Client as Stub, Code, ConnectError, createClient, type StreamResponse, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { PeripetyError } from "./errors.js";
import { serviceConfig } from "./gen/service_config.js";
import { newRequestId } from "./request_id.js";

/** Options of a connection, of Node.js and of browsers. */
export interface ConnectOptions {
  /** Token, sent as `Authorization: Bearer TOKEN`. A function is called for each call, so it can refresh the token. */
  readonly token?: string | (() => string | Promise<string>);
  /** Headers of every call. */
  readonly headers?: Readonly<Record<string, string>>;
}

interface RetryPolicy {
  readonly maxAttempts: number;
  readonly initialBackoff: string;
  readonly maxBackoff: string;
  readonly backoffMultiplier: number;
  readonly retryableStatusCodes: readonly string[];
}

interface MethodConfig {
  readonly name: readonly { readonly service: string; readonly method: string }[];
  readonly timeout?: string;
  readonly retryPolicy?: RetryPolicy;
}

const METHODS = new Map(
  (serviceConfig.methodConfig as readonly MethodConfig[]).flatMap((config) =>
    config.name.map(({ service, method }) => [`${service}/${method}`, config] as const),
  ),
);

/** Return the settings of a method in the service config: its deadline and its retries. */
export function configOf(method: DescMethod): MethodConfig | undefined {
  return METHODS.get(`${method.parent.typeName}/${method.name}`);
}

/**
 * Wrap a transport, so that its calls follow the service config and throw `PeripetyError`.
 *
 * @param closed - cancels the calls that run, and all later ones.
 */
export function withPolicies(transport: Transport, options: ConnectOptions, closed: AbortSignal): Transport {
  const throttle = new Throttle();

  async function headersOf(given: HeadersInit | undefined): Promise<Headers> {
    const headers = new Headers(options.headers);
    if (options.token !== undefined) {
      const token = typeof options.token === "string" ? options.token : await options.token();
      headers.set("authorization", `Bearer ${token}`);
    }
    new Headers(given).forEach((value, name) => headers.set(name, value));
    return headers;
  }

  /** Start a call, again if it failed before the server answered. */
  async function start<R>(
    method: DescMethod,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    given: HeadersInit | undefined,
    isRepeatable: boolean,
    attempt: (timeoutMs: number | undefined, headers: Headers) => Promise<R>,
  ): Promise<R> {
    const config = configOf(method);
    const limit = timeoutMs ?? (config?.timeout === undefined ? undefined : parseDuration(config.timeout));
    const deadline = limit === undefined ? undefined : Date.now() + limit;
    for (let failures = 0; ; ) {
      try {
        const left = deadline === undefined ? undefined : Math.max(1, deadline - Date.now());
        const response = await attempt(left, await headersOf(given));
        throttle.succeeded();
        return response;
      } catch (reason) {
        const error = translate(reason, signal);
        const policy = config?.retryPolicy;
        failures += 1;
        // Every method with a policy is idempotent, so it is repeated after a lost connection, whatever its code.
        if (policy === undefined || !isRepeatable || !(error.isConnectionLost || isRetryable(policy, error))) throw error;
        const delay = pushback(error) ?? error.retryAfterMs ?? backoff(policy, failures);
        const isLate = deadline !== undefined && Date.now() + delay >= deadline;
        if (!throttle.failed() || failures >= policy.maxAttempts || delay < 0 || isLate) throw error;
        await sleep(delay, signal);
      }
    }
  }

  return {
    async unary(method, given, timeoutMs, headers, input, values): Promise<UnaryResponse<any, any>> {
      const request = identify(method.input, input);
      const { controller, unlink } = linkedController(given, closed);
      const { signal } = controller;
      return start(method, signal, timeoutMs, headers, true, (left, all) =>
        transport.unary(method, signal, left, all, request, values),
      ).finally(unlink);
    },
    async stream(method, signal, timeoutMs, given, input, values): Promise<StreamResponse<any, any>> {
      const isRepeatable = method.methodKind === "server_streaming";
      const requests = isRepeatable ? (await collect(input)).map((request) => identify(method.input, request)) : undefined;
      const response = await start(method, signal, timeoutMs, given, isRepeatable, (left, headers) =>
        transport.stream(method, signal, left, headers, requests ? iterate(requests) : input, values),
      );
      return { ...response, message: translateErrors(response.message, signal) };
    },
  };
}

/**
 * Return the stub of a service. Unlike those of Connect, its streams are cancelled when their reader leaves the loop, and
 * when the client is closed.
 */
export function createStub<Service extends DescService>(service: Service, transport: Transport, closed: AbortSignal): Stub<Service> {
  const stub = createClient(service, transport) as Record<string, unknown>;
  for (const { localName, methodKind } of service.methods) {
    if (methodKind === "server_streaming" || methodKind === "bidi_streaming") {
      stub[localName] = cancelledOnReturn(stub[localName] as StreamCall, closed);
    }
  }
  return stub as Stub<Service>;
}

type StreamCall = (request: unknown, options?: CallOptions) => AsyncIterable<unknown>;

function cancelledOnReturn(call: StreamCall, closed: AbortSignal): StreamCall {
  return async function* (request, options) {
    const { controller, unlink } = linkedController(options?.signal, closed);
    const messages = call(request, { ...options, signal: controller.signal })[Symbol.asyncIterator]();
    // Connect clears the timer of the deadline only when the stream is read to its end.
    controller.signal.addEventListener("abort", () => void drain(messages));
    try {
      for (let result = await messages.next(); !result.done; result = await messages.next()) yield result.value;
    } finally {
      unlink();
      controller.abort();
    }
  };
}

async function drain(messages: AsyncIterator<unknown>): Promise<void> {
  try {
    while (!(await messages.next()).done);
  } catch {
    // The reader has left, or receives the error itself.
  }
}

/** Return a controller that is aborted with any of the signals. `unlink` removes it from them. */
export function linkedController(...signals: (AbortSignal | undefined)[]): { controller: AbortController; unlink: () => void } {
  const controller = new AbortController();
  const abort = (event: Event): void => controller.abort((event.target as AbortSignal).reason);
  for (const signal of signals) {
    if (signal?.aborted) controller.abort(signal.reason);
    signal?.addEventListener("abort", abort, { once: true });
  }
  return { controller, unlink: () => signals.forEach((signal) => signal?.removeEventListener("abort", abort)) };
}

/** Set the request id if the caller did not, so that a repeated call has no second effect. */
function identify<T extends object>(type: DescMessage, request: T): T {
  if (!type.fields.some((field) => field.name === "request_id" && field.oneof === undefined)) return request;
  return "requestId" in request && request.requestId ? request : { ...request, requestId: newRequestId() };
}

async function* translateErrors<T>(messages: AsyncIterable<T>, signal: AbortSignal | undefined): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (reason) {
    throw translate(reason, signal);
  }
}

/** Convert the error of a call. A call that ends as cancelled, but not by its caller, has lost its connection. */
function translate(reason: unknown, signal: AbortSignal | undefined): PeripetyError {
  const error = PeripetyError.from(reason);
  if (error.code !== Code.Canceled || signal?.aborted || error.reason !== "") return error;
  return new PeripetyError(`connection was lost (${error.message})`, Code.Unavailable, { cause: error.cause });
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

async function* iterate<T>(items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

/** Retry budget: retries stop while more than one call in ten fails. */
class Throttle {
  readonly #most = serviceConfig.retryThrottling.maxTokens;
  #tokens: number = this.#most;

  succeeded(): void {
    this.#tokens = Math.min(this.#most, this.#tokens + serviceConfig.retryThrottling.tokenRatio);
  }

  /** Count a failure, and return true if a retry is allowed. */
  failed(): boolean {
    this.#tokens = Math.max(0, this.#tokens - 1);
    return this.#tokens > this.#most / 2;
  }
}

function isRetryable(policy: RetryPolicy, error: PeripetyError): boolean {
  return policy.retryableStatusCodes.some((name) => name === STATUS_NAMES[error.code]);
}

const STATUS_NAMES: Partial<Record<Code, string>> = {
  [Code.Unavailable]: "UNAVAILABLE",
  [Code.ResourceExhausted]: "RESOURCE_EXHAUSTED",
  [Code.Aborted]: "ABORTED",
};

/** Return the delay that the server requests in milliseconds; negative if it forbids a retry. */
function pushback(error: PeripetyError): number | undefined {
  const value = error.cause instanceof ConnectError ? error.cause.metadata.get("grpc-retry-pushback-ms") : null;
  return value === null ? undefined : /^\d+$/.test(value) ? Number(value) : -1;
}

/** Return the delay before a retry in milliseconds: exponential, with a random part so that clients do not return together. */
export function backoff(policy: Omit<RetryPolicy, "maxAttempts" | "retryableStatusCodes">, failures: number): number {
  const longest = parseDuration(policy.initialBackoff) * policy.backoffMultiplier ** (failures - 1);
  return Math.min(longest, parseDuration(policy.maxBackoff)) * (0.8 + Math.random() * 0.4);
}

/** Return a JSON duration, such as `0.1s`, in milliseconds. */
export function parseDuration(text: string): number {
  return Number(text.slice(0, -1)) * 1000;
}

/** Wait, or throw if the signal is aborted first. */
export function sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(new PeripetyError("the call was cancelled", Code.Canceled, { cause: signal?.reason }));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, milliseconds);
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}
