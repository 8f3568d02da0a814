/** A server to test against, sessions on it, and turns in a form that can be compared. */

import { readFileSync } from "node:fs";
import { type Client, connect, type TurnInput } from "@peripety/client";
import { connect as connectWeb } from "@peripety/client/web";
import type { Session, TurnEvent } from "@peripety/client/api/session/v1/session";

/** Address of the gRPC services; tests/e2e/test_typescript_client.py starts them. */
export const ADDRESS = required("PERIPETY_ADDRESS");
/** Address of the HTTP edge. */
export const EDGE = required("PERIPETY_EDGE");

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; run these tests by \`make test-clients\``);
  return value;
}

export const SPEC = readFileSync(new URL("../../../../samples/scenario.json", import.meta.url));

/** Clients over both protocols. */
export const CLIENTS = {
  gRPC: (): Client => connect(ADDRESS),
  Connect: (): Client => connectWeb(EDGE),
};

export async function compile(client: Client): Promise<string> {
  for await (const { event } of client.scenarios.compileScenario({ source: { case: "spec", value: SPEC } })) {
    if (event.case === "compiled") return event.value.scenarioId;
  }
  throw new Error("the scenario was rejected");
}

export async function newSession(client: Client, scenarioId?: string): Promise<Session> {
  const created = await client.sessions.createSession({ scenarioId: scenarioId ?? (await compile(client)), seed: 7n });
  return created.session!;
}

export const TEND: TurnInput = { actions: [{ actionId: "tend" }] };

/** Return what a reader has when the stream ends: the events since the last `accepted`, without ids and times. */
export async function receive(turn: AsyncIterable<TurnEvent>): Promise<string[]> {
  let events: string[] = [];
  for await (const event of turn) {
    if (event.event.case === "accepted") events = [];
    events.push(describe(event));
  }
  return events;
}

function describe({ turn, sequence, event }: TurnEvent): string {
  const start = `${turn}.${sequence} ${event.case}`;
  switch (event.case) {
    case "narrativeChunk":
      return `${start} ${event.value.text}`;
    case "committed":
      return `${start} ${event.value.chainHash} ${event.value.narrative}`;
    default:
      return start;
  }
}
