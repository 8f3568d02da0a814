import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createServer } from "node:tls";
import { create, toBinary } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { ConnectError, createRouterTransport } from "@connectrpc/connect";
import { Client, Code, connect, PeripetyError, verifyTranscript, type SpecDocument } from "@peripety/client";
import { SessionService } from "@peripety/client/api/session/v1/session";
import { ADDRESS, CLIENTS, compile, newSession, receive, SPEC, TEND } from "./support/game.js";
import { Proxy } from "./support/proxy.js";

const direct = connect(ADDRESS);
after(() => direct.close());

for (const [name, open] of Object.entries(CLIENTS)) {
  test(`${name}: a turn is streamed, and the session is at the next one`, async () => {
    const client = open();
    const session = await newSession(client);
    const cases: (string | undefined)[] = [];
    for await (const { event } of client.play(session, TEND)) cases.push(event.case);
    assert.deepEqual(cases.slice(0, 3), ["accepted", "actionResolved", "worldResolved"]);
    assert.equal(cases.at(-1), "committed");
    const stored = (await client.sessions.getSession({ sessionId: session.sessionId })).session!;
    for (const field of ["turn", "stateHash", "chainHash", "lastSequence", "legalActions", "status"] as const) {
      assert.deepEqual(session[field], stored[field], field);
    }
    client.close();
  });

  test(`${name}: an exported session has the chain hash of the server`, async () => {
    const client = open();
    const session = await newSession(client);
    for (let turn = 0; turn < 3; turn += 1) await receive(client.play(session, TEND));
    const verified = await verifyTranscript(await client.exportTranscript(session.sessionId));
    assert.deepEqual([verified.chainHash, verified.turns], [session.chainHash, 3]);
    client.close();
  });

  test(`${name}: an error has its reason and the invalid fields`, async () => {
    const client = open();
    await assert.rejects(client.sessions.getSession({ sessionId: "unknown" }), (error) => {
      assert(error instanceof PeripetyError);
      assert.deepEqual([error.code, error.is("UNKNOWN_SESSION"), error.is("STALE_TURN")], [Code.NotFound, true, false]);
      return !error.isConnectionLost;
    });
    await assert.rejects(client.sessions.listSessions({ pageSize: -1 }), (error) => {
      assert(error instanceof PeripetyError);
      assert.equal(error.violations[0]?.field, "page_size");
      return error.is("INVALID_ARGUMENT");
    });
    const played = client.play({ sessionId: (await newSession(client)).sessionId, turn: 5n });
    await assert.rejects(played.next(), (error) => error instanceof PeripetyError && error.is("STALE_TURN"));
    client.close();
  });

  test(`${name}: progress of long work never decreases, and ends`, async () => {
    const client = open();
    const fractions: number[] = [];
    const work = client.follow(client.scenarios.compileScenario, { source: { case: "spec", value: SPEC } });
    let last: string | undefined;
    for await (const { event } of work) {
      if (event.case === "progress") fractions.push(event.value.fraction);
      last = event.case;
    }
    assert(fractions.length > 3);
    assert.deepEqual(fractions, [...fractions].sort((left, right) => left - right));
    assert.equal(last, "compiled");
    client.close();
  });

  test(`${name}: a quiet stream opens before its first event, and ends when it is cancelled`, async () => {
    const client = open();
    const { sessionId } = await newSession(client);
    const controller = new AbortController();
    const { signal } = controller;
    const [opened, stream] = await new Promise<[Headers, Promise<unknown>]>((resolve) => {
      const onHeader = (headers: Headers): void => resolve([headers, first]);
      const first = client.sessions.watchSession({ sessionId }, { signal, onHeader })[Symbol.asyncIterator]().next();
    });
    assert(opened);
    controller.abort();
    await assert.rejects(stream, (error) => error instanceof PeripetyError && error.code === Code.Canceled);
    client.close();
  });
}

test("a reader that stops early ends the call on the server", async () => {
  let isCancelled = false;
  const transport = createRouterTransport(({ service }) => {
    service(SessionService, {
      async *takeTurn(_, { signal }) {
        signal.addEventListener("abort", () => void (isCancelled = true));
        yield { event: { turn: 1n, sequence: 1n, event: { case: "accepted" as const, value: { attemptId: "a" } } } };
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    });
  });
  for await (const _ of new Client(transport).play({ sessionId: "a", turn: 0n }, { timeoutMs: 1_000 })) break;
  await new Promise((resolve) => setTimeout(resolve, 10));
  assert(isCancelled);
});

test("a silent connection counts as lost after the time that the caller sets", async () => {
  const ids: string[] = [];
  const transport = createRouterTransport(({ service }) => {
    service(SessionService, {
      async *takeTurn({ requestId }, { signal }) {
        ids.push(requestId);
        yield { event: { sequence: 1n, event: { case: "accepted" as const, value: { attemptId: "a" } } } };
        if (ids.length === 1) await new Promise((resolve) => signal.addEventListener("abort", resolve));
        yield { event: { sequence: 2n, event: { case: "committed" as const, value: { chainHash: "b" } } } };
      },
    });
  });
  const cases: (string | undefined)[] = [];
  const turn = new Client(transport).play({ sessionId: "a", turn: 0n }, { silenceMs: 50, timeoutMs: 5_000 });
  for await (const { event } of turn) cases.push(event.case);
  assert.deepEqual(cases, ["accepted", "committed"]);
  assert.deepEqual(ids, [ids[0], ids[0]]);
});

test("work that loses its connection continues behind the last event", async () => {
  const proxy = await Proxy.start(ADDRESS);
  const client = connect(proxy.address);
  proxy.inject({ kind: "cut", at: 700 });
  const sequences: bigint[] = [];
  let reconnects = 0;
  const request = { description: "Two players share one table." };
  const onReconnect = (): void => void (reconnects += 1);
  let last: string | undefined;
  for await (const { sequence, event } of client.follow(client.scenarios.generateScenario, request, { onReconnect })) {
    sequences.push(sequence);
    last = event.case;
  }
  assert.deepEqual([reconnects, last], [1, "completed"]);
  assert.deepEqual(sequences, sequences.map((_, index) => BigInt(index + 1)));
  client.close();
  proxy.close();
});

test("work without a record starts again", async () => {
  const proxy = await Proxy.start(ADDRESS);
  const client = connect(proxy.address);
  proxy.inject({ kind: "cut", at: 700 });
  const sequences: bigint[] = [];
  let last: string | undefined;
  const work = client.follow(client.scenarios.compileScenario, { source: { case: "spec", value: SPEC } });
  for await (const { sequence, event } of work) {
    if (sequence === 1n) sequences.length = 0;
    sequences.push(sequence);
    last = event.case;
  }
  assert.equal(last, "compiled");
  assert.deepEqual(sequences, sequences.map((_, index) => BigInt(index + 1)));
  client.close();
  proxy.close();
});

test("a watched session continues behind the last event, and ends with the run", async () => {
  const session = await newSession(direct);
  await receive(direct.play(session, TEND));
  const proxy = await Proxy.start(ADDRESS);
  const client = connect(proxy.address);
  proxy.inject({ kind: "cut", at: 900 });
  const seen: bigint[] = [];
  for await (const { event } of client.watch({ sessionId: session.sessionId })) {
    if (event.case !== "turnEvent") continue;
    seen.push(event.value.sequence);
    if (event.value.event.case === "committed" && event.value.turn === 1n) await receive(direct.play(session, TEND));
    if (event.value.event.case === "committed" && event.value.turn === 2n) break;
  }
  assert.equal(proxy.connections, 2);
  assert.deepEqual(seen, seen.map((_, index) => BigInt(index + 1)));
  client.close();
  proxy.close();
});

test("documents are read only as fast as verdicts are", async () => {
  let read = 0;
  let isClosed = false;
  async function* endless(): AsyncGenerator<SpecDocument> {
    try {
      for (;;) yield { id: `${(read += 1)}`, spec: SPEC };
    } finally {
      isClosed = true;
    }
  }
  let verdicts = 0;
  for await (const { itemId, accepted } of direct.validate(endless())) {
    assert(accepted, itemId);
    verdicts += 1;
    if (verdicts === 1000) break;
    if (verdicts === 500) {
      const before = read;
      await new Promise((resolve) => setTimeout(resolve, 300));
      assert(read - before < 20_000, `${read - before} documents were read meanwhile`);
    }
  }
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert(isClosed, "the documents were not closed");
});

test("a connection with TLS trusts the given authority alone", async () => {
  const folder = mkdtempSync(join(tmpdir(), "peripety-"));
  const [key, certificate] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  const request = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1";
  execFileSync("openssl", [...request.split(" "), "-keyout", key, "-out", certificate], { stdio: "ignore" });
  const [host, port] = ADDRESS.split(":");
  const options = { key: readFileSync(key), cert: readFileSync(certificate), ALPNProtocols: ["h2"] };
  const server = createServer(options, (socket) => {
    const plain = connectTcp(Number(port), host!);
    for (const side of [socket, plain]) side.on("error", () => side.destroy());
    socket.on("close", () => plain.destroy());
    plain.on("close", () => socket.destroy());
    socket.pipe(plain).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = `127.0.0.1:${(server.address() as { port: number }).port}`;
  const trusting = connect(address, { tls: { ca: readFileSync(certificate) } });
  await receive(trusting.play(await newSession(trusting), TEND));
  const strict = connect(`https://${address}`);
  await assert.rejects(strict.sessions.listSessions({}, { timeoutMs: 5_000 }), PeripetyError);
  for (const client of [trusting, strict]) client.close();
  server.close();
});

test("an error of the documents is thrown as it is", async () => {
  async function* failing(): AsyncGenerator<SpecDocument> {
    yield { id: "1", spec: SPEC };
    throw new RangeError("no further documents");
  }
  const validate = async (): Promise<void> => {
    for await (const _ of direct.validate(failing()));
  };
  await assert.rejects(validate(), RangeError);
});

/** Return a client of a server in this process, whose `GetSession` answers with these errors before it succeeds. */
function clientOf(errors: ConnectError[], requests: Headers[] = [], ids: string[] = []): Client {
  const transport = createRouterTransport(({ service }) => {
    service(SessionService, {
      getSession(_, { requestHeader, timeoutMs }) {
        requests.push(requestHeader);
        assert(timeoutMs() !== undefined && timeoutMs()! <= 60_000, "the deadline of the service config");
        const error = errors.shift();
        if (error) throw error;
        return {};
      },
      deleteSession({ requestId }) {
        ids.push(requestId);
        const error = errors.shift();
        if (error) throw error;
        return {};
      },
    });
  });
  return new Client(transport, { token: async () => "secret", headers: { "x-peripety-caller": "test" } });
}

/** Return an error that allows a retry, after a delay if one is given. */
function unavailable(delayMs?: number): ConnectError {
  const metadata = delayMs === undefined ? undefined : { "grpc-retry-pushback-ms": String(delayMs) };
  return new ConnectError("restarting", Code.Unavailable, metadata);
}

test("a call is repeated at most three times, with token, headers and deadline", async () => {
  const requests: Headers[] = [];
  await clientOf([unavailable(), unavailable(), unavailable(1)], requests).sessions.getSession({ sessionId: "a" });
  assert.equal(requests.length, 4);
  for (const headers of requests) {
    assert.equal(headers.get("authorization"), "Bearer secret");
    assert.equal(headers.get("x-peripety-caller"), "test");
  }
  const failing = clientOf(Array.from({ length: 4 }, () => unavailable())).sessions.getSession({ sessionId: "a" });
  await assert.rejects(failing, (error) => error instanceof PeripetyError && error.code === Code.Unavailable);
});

test("other errors are not repeated, and neither is a call that the server forbids to repeat", async () => {
  const forbidden = new ConnectError("full", Code.Unavailable, { "grpc-retry-pushback-ms": "-1" });
  for (const error of [new ConnectError("no", Code.NotFound), forbidden]) {
    const requests: Headers[] = [];
    await assert.rejects(clientOf([error], requests).sessions.getSession({ sessionId: "a" }), PeripetyError);
    assert.equal(requests.length, 1);
  }
});

test("a failing server gets no more retries after a while", async () => {
  const requests: Headers[] = [];
  const client = clientOf(Array.from({ length: 99 }, () => unavailable(1)), requests);
  for (let call = 0; call < 10; call += 1) await client.sessions.getSession({ sessionId: "a" }).catch(() => {});
  assert(requests.length < 20, String(requests.length));
});

test("a repeated call has the same request id, and another call has another one", async () => {
  const ids: string[] = [];
  const client = clientOf([unavailable(1)], [], ids);
  await client.sessions.deleteSession({ sessionId: "a" });
  await client.sessions.deleteSession({ sessionId: "a" });
  await client.sessions.deleteSession({ sessionId: "a", requestId: "chosen" });
  assert.equal(ids.length, 4);
  assert.match(ids[0]!, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(ids[0], ids[1]);
  assert.notEqual(ids[1], ids[2]);
  assert.equal(ids[3], "chosen");
});

test("an error has the retry hint of the server", () => {
  const error = unavailable();
  assert.equal(PeripetyError.from(error).retryAfterMs, undefined);
  const delay = toBinary(DurationSchema, create(DurationSchema, { seconds: 2n, nanos: 250_000_000 }));
  error.details.push({ type: "google.rpc.RetryInfo", value: Uint8Array.of(0x0a, delay.length, ...delay) });
  assert.equal(PeripetyError.from(error).retryAfterMs, 2250);
});

test("a cancelled turn ends at once, and is not continued", async () => {
  const controller = new AbortController();
  controller.abort();
  let reconnects = 0;
  const turn = direct.play(await newSession(direct, await compile(direct)), {
    ...TEND,
    signal: controller.signal,
    onReconnect: () => void (reconnects += 1),
  });
  await assert.rejects(turn.next(), (error) => error instanceof PeripetyError && error.code === Code.Canceled);
  assert.equal(reconnects, 0);
});
