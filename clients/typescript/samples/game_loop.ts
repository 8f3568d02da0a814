// A game loop: each frame draws what has arrived, and no frame waits for the network.
import { readFileSync } from "node:fs";
import { connect } from "@peripety/client";
import type { TurnEvent } from "@peripety/client/api/session/v1/session";

const client = connect(process.env.PERIPETY_ADDRESS ?? "127.0.0.1:50051");
let scenarioId = "";
const spec = readFileSync("scenario.json");
for await (const { event } of client.scenarios.compileScenario({ source: { case: "spec", value: spec } })) {
  if (event.case === "compiled") scenarioId = event.value.scenarioId;
}
const session = (await client.sessions.createSession({ scenarioId, seed: 7n })).session!;

const arrived: TurnEvent[] = []; // filled by the network, emptied by the frames
let isPlaying = false;
let prose = "";

async function takeTurn(actionId: string): Promise<void> {
  isPlaying = true;
  for await (const event of client.play(session, { actions: [{ actionId }] })) arrived.push(event);
  isPlaying = false;
}

function frame(count: number): void {
  for (const { event } of arrived.splice(0)) {
    if (event.case === "accepted" || event.case === "narrativeRetracted") prose = "";
    if (event.case === "narrativeChunk") prose += event.value.text;
    if (event.case === "committed") console.log(`frame ${count}: turn ${session.turn}: ${prose}`);
  }
  if (!isPlaying && arrived.length === 0) {
    if (session.turn >= 3n || session.legalActions.length === 0) return client.close();
    takeTurn(session.legalActions[0]!.actionId).catch((error: Error) => console.log(error.message));
  }
  setTimeout(frame, 16, count + 1); // in a browser: requestAnimationFrame
}
frame(0);
