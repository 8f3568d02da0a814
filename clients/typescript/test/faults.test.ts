import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, connect, PeripetyError, type PlayedSession } from "@peripety/client";
import { connect as connectWeb } from "@peripety/client/web";
import { ADDRESS, compile, EDGE, newSession, receive, TEND } from "./support/game.js";
import { type Fault, Proxy } from "./support/proxy.js";

const OFFSETS = Number(process.env.PERIPETY_CUTS ?? 200);
const direct = connect(ADDRESS);
let scenarioId: string;

before(async () => {
  scenarioId = await compile(direct);
});
after(() => direct.close());

/** Return `count` offsets below `end`, the same ones in each run. */
function seededOffsets(end: number, count: number): number[] {
  let state = 1;
  return Array.from({ length: count }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return state % end;
  });
}

interface Setup {
  proxy: Proxy;
  expected: string[];
  /** Bytes from the server on a connection that plays one turn. */
  length: number;
  /** Play a turn over a connection with these faults, with a client of its own. */
  play(faults: Fault[]): Promise<{ events: string[]; session: PlayedSession; reconnects: number }>;
}

async function setUp(target: string, open: (address: string) => Client): Promise<Setup> {
  const proxy = await Proxy.start(target);
  const expected = await receive(direct.play(await newSession(direct, scenarioId), TEND));
  async function play(faults: Fault[]) {
    const session = await newSession(direct, scenarioId);
    const client = open(proxy.address);
    proxy.inject(...faults);
    let reconnects = 0;
    const onReconnect = (): void => void (reconnects += 1);
    try {
      const turn = client.play(session, { ...TEND, timeoutMs: 60_000, onReconnect });
      return { events: await receive(turn), session, reconnects };
    } finally {
      client.close();
    }
  }
  const good = await play([]);
  assert.deepEqual(good.events, expected);
  return { proxy, expected, length: proxy.received, play };
}

const OPEN: Record<string, [string, (address: string) => Client]> = {
  gRPC: [ADDRESS, (address) => connect(address, { keepalive: { intervalMs: 200, timeoutMs: 200 } })],
  Connect: [EDGE.replace("http://", ""), (address) => connectWeb(address)],
};

for (const [name, [target, open]] of Object.entries(OPEN)) {
  test(`${name}: a turn that is cut at any byte is played once`, { timeout: 400_000 }, async () => {
    const { proxy, expected, length, play } = await setUp(target, open);
    assert(length > 500, String(length));
    try {
      for (const [index, at] of seededOffsets(length, OFFSETS).entries()) {
        const kind = index % 2 === 0 ? "cut" : "end";
        const { events, session } = await play([{ kind, at }]);
        assert.deepEqual(events, expected, `${kind} at byte ${at} of ${length}`);
        assert.equal(session.turn, 1n);
      }
    } finally {
      proxy.close();
    }
  });
}

for (const [name, [target, open]] of Object.entries(OPEN)) {
  test(`${name}: a unary call that is cut at any byte is repeated, and has one effect`, { timeout: 60_000 }, async () => {
    const count = async (): Promise<number> => (await direct.sessions.listSessions({ scenarioId, pageSize: 1000 })).sessions.length;
    const before = await count();
    const offsets = seededOffsets(200, 20);
    for (const [index, at] of offsets.entries()) {
      const proxy = await Proxy.start(target);
      const client = open(proxy.address);
      proxy.inject({ kind: index % 2 === 0 ? "cut" : "end", at });
      try {
        await client.sessions.createSession({ scenarioId, seed: 7n }, { timeoutMs: 10_000 });
        assert.equal(proxy.connections, 2, `byte ${at}`);
      } finally {
        client.close();
        proxy.close();
      }
    }
    assert.equal(await count(), before + offsets.length);
  });
}

test("gRPC: a half-open connection is detected by pings", { timeout: 60_000 }, async () => {
  const { proxy, expected, length, play } = await setUp(...OPEN.gRPC!);
  try {
    for (const at of seededOffsets(length, 12)) {
      const { events } = await play([{ kind: "halfOpen", at }]);
      assert.deepEqual(events, expected, `silent behind byte ${at} of ${length}`);
    }
  } finally {
    proxy.close();
  }
});

test("gRPC: two lost connections in a row, GOAWAY and single bytes do not change a turn", { timeout: 60_000 }, async () => {
  const { proxy, expected, length, play } = await setUp(...OPEN.gRPC!);
  try {
    for (const at of seededOffsets(length, 8)) {
      for (const faults of [[{ kind: "cut", at }, { kind: "end", at }], [{ kind: "goAway", at }], [{ kind: "trickle" }]]) {
        const { events } = await play(faults as Fault[]);
        assert.deepEqual(events, expected, JSON.stringify(faults));
      }
    }
  } finally {
    proxy.close();
  }
});

test("a slow reader gets every event", { timeout: 60_000 }, async () => {
  const session = await newSession(direct, scenarioId);
  const expected = await receive(direct.play(await newSession(direct, scenarioId), TEND));
  async function* slowly() {
    for await (const event of direct.play(session, TEND)) {
      await sleep(20);
      yield event;
    }
  }
  assert.deepEqual(await receive(slowly()), expected);
});

test("a server that does not return is an error with a reason to retry", { timeout: 60_000 }, async () => {
  const proxy = await Proxy.start(ADDRESS);
  const session = await newSession(direct, scenarioId);
  const client = connect(proxy.address);
  proxy.inject(...Array.from({ length: 50 }, () => ({ kind: "cut", at: 0 }) as const));
  try {
    const failing = receive(client.play(session, { ...TEND, maxAttempts: 3, timeoutMs: 20_000 }));
    await assert.rejects(failing, (error) => error instanceof PeripetyError && error.isConnectionLost);
  } finally {
    client.close();
    proxy.close();
  }
});
