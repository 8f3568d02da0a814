// Calls to the edge: JSON, problem documents, and server-sent events that continue after a lost connection.

export interface Violation {
  field: string;
  description: string;
}

/** A failure that the page can show: what happened, and what to do. */
export class Problem extends Error {
  constructor(
    readonly code: string,
    readonly status: number,
    detail: string,
    readonly findings: Finding[] = [],
  ) {
    super(detail);
  }
}

export interface Finding {
  code: string;
  path?: string;
  message: string;
  severity?: string;
  remedy?: string;
}

export interface ServerEvent {
  name: string;
  id: string;
  data: any;
}

const TOKEN = "peripety.token";
const JSON_TYPE = "application/json";
const RETRIES = 6;
const ENDED_MS = 4000;

export function setToken(token: string): void {
  sessionStorage.setItem(TOKEN, token);
}

function headers(extra: Record<string, string> = {}): Record<string, string> {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...extra, authorization: `Bearer ${token}` } : extra;
}

async function send(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers: headers(init.headers as Record<string, string>) });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem("OFFLINE", 0, "");
  }
  if (!response.ok) throw await toProblem(response);
  return response;
}

async function toProblem(response: Response): Promise<Problem> {
  try {
    const body = await response.json();
    return new Problem(body.code ?? "", response.status, body.detail ?? "", body.findings ?? []);
  } catch {
    return new Problem("", response.status, response.statusText);
  }
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await send(path, { signal })).json() as Promise<T>;
}

export async function post<T>(
  path: string,
  body: unknown = {},
  options: { signal?: AbortSignal; key?: string; headers?: Record<string, string> } = {},
): Promise<T> {
  const key: Record<string, string> = options.key ? { "idempotency-key": options.key } : {};
  const extra = { "content-type": JSON_TYPE, ...key, ...options.headers };
  const response = await send(path, {
    method: "POST",
    headers: extra,
    body: JSON.stringify(body),
    signal: options.signal,
  });
  return response.json() as Promise<T>;
}

/** Calls a method of the contract that returns one message. */
export function rpc<T>(
  method: string,
  request: unknown = {},
  signal?: AbortSignal,
  headers?: Record<string, string>,
): Promise<T> {
  return post<T>(`/rpc/${method}`, request, { signal, headers });
}

/** Calls a method of the contract that returns a stream, and yields its messages. */
export async function* rpcStream<T>(method: string, request: unknown, signal?: AbortSignal): AsyncGenerator<T> {
  for await (const event of stream(`/rpc/${method}`, request, { signal })) {
    if (event.name === "error") throw asProblem(event.data);
    if (event.name === "message") yield event.data as T;
  }
}

export function asProblem(data: any): Problem {
  return new Problem(data?.code ?? "", data?.status ?? 0, data?.detail ?? data?.message ?? "", data?.findings ?? []);
}

/** Posts a request, and yields the events of its answer. */
export async function* stream(
  path: string,
  body: unknown,
  options: { signal?: AbortSignal; key?: string } = {},
): AsyncGenerator<ServerEvent> {
  const extra = {
    "content-type": JSON_TYPE,
    accept: "text/event-stream",
    ...(options.key ? { "idempotency-key": options.key } : {}),
  };
  const response = await send(path, {
    method: "POST",
    headers: extra,
    body: JSON.stringify(body),
    signal: options.signal,
  });
  yield* readEvents(response);
}

/** Yields the events of a session, and continues after a lost connection where it broke. */
export async function* follow(
  path: string,
  signal: AbortSignal,
  onConnection: (connected: boolean) => void,
): AsyncGenerator<ServerEvent> {
  let last = "";
  let failures = 0;
  let isOver = false;
  while (!signal.aborted) {
    try {
      const response = await send(path, { headers: last ? { "last-event-id": last } : {}, signal });
      onConnection(true);
      for await (const event of readEvents(response)) {
        failures = 0;
        last = event.id || last;
        if (event.name === "error" && !event.id) throw asProblem(event.data);
        yield event;
        if (event.name === "closed" && event.data.reason === "SESSION_DELETED") return;
        // A run that has ended can continue: its last turns may be undone.
        isOver = event.name === "closed" && event.data.reason === "RUN_ENDED";
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status >= 400 && error.status < 500 && error.status !== 429) throw error;
      onConnection(false);
    }
    if (isOver) {
      await pause(ENDED_MS, signal);
      continue;
    }
    failures += 1;
    await pause(150 * 2 ** Math.min(failures, 5), signal);
  }
}

/** Plays a turn. A lost connection repeats the request with its id, so the turn is played once. */
export async function playTurn(path: string, body: Record<string, unknown>): Promise<any> {
  const request = { ...body, request_id: crypto.randomUUID() };
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await send(path, {
        method: "POST",
        headers: { "content-type": JSON_TYPE },
        body: JSON.stringify(request),
      });
      if (response.status === 202) return await response.json();
      for await (const event of readEvents(response)) {
        if (event.name === "error") throw asProblem(event.data);
        if (event.name === "diff") return event.data;
      }
    } catch (error) {
      if (error instanceof Problem && error.code !== "OFFLINE") throw error;
      if (attempt >= RETRIES) throw error;
    }
    await pause(250 * 2 ** Math.min(attempt, 4));
  }
}

export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Yields complete events only: one that is cut off by the end of the stream is dropped. */
async function* readEvents(response: Response): AsyncGenerator<ServerEvent> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      const blocks = rest.split("\n\n");
      rest = blocks.pop()!;
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function parseEvent(block: string): ServerEvent | undefined {
  const event: ServerEvent = { name: "message", id: "", data: undefined };
  for (const line of block.split("\n")) {
    const at = line.indexOf(": ");
    if (at <= 0) continue;
    const value = line.slice(at + 2);
    const field = line.slice(0, at);
    if (field === "event") event.name = value;
    else if (field === "id") event.id = value;
    else if (field === "data") event.data = JSON.parse(value);
  }
  return event.data === undefined ? undefined : event;
}
