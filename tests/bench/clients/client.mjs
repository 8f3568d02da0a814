// TypeScript side of `make bench-clients`.
import { readFileSync } from "node:fs";
import { connect } from "../../../clients/typescript/dist/node.js";

const [address, scenarioId, documents, ...counts] = process.argv.slice(2);
const [sessions, turns, rounds] = counts.map(Number);
const lines = readFileSync(documents, "utf-8").trimEnd().split("\n").map((line) => new TextEncoder().encode(line));
const client = connect(address);
let opened = [];

async function openQuietly() {
  for (const { sessionId } of opened) {
    const controller = new AbortController();
    await new Promise((onHeader, fail) => {
      const stream = client.sessions.watchSession({ sessionId }, { signal: controller.signal, onHeader });
      stream[Symbol.asyncIterator]().next().catch(fail);
    });
    controller.abort();
  }
  return sessions;
}

async function play(session) {
  for (let turn = 0; turn < turns; turn += 1) {
    for await (const _ of client.play(session, { actions: [{ actionId: "hold" }] }));
  }
  return turns;
}

async function watch(session) {
  let events = 0;
  for await (const { event } of client.watch({ sessionId: session.sessionId })) {
    events += 1;
    if (event.case === "turnEvent" && event.value.event.case === "committed" && event.value.turn === session.turn) break;
  }
  return events;
}

async function together(act) {
  return (await Promise.all(opened.map(act))).reduce((sum, part) => sum + part);
}

async function validate() {
  let accepted = 0;
  for await (const verdict of client.validate(lines.map((spec, number) => ({ id: String(number), spec })))) {
    accepted += Number(verdict.accepted);
  }
  return accepted;
}

const best = { openings: 0, turns: 0, events: 0, specifications: 0 };
const works = { openings: openQuietly, turns: () => together(play), events: () => together(watch), specifications: validate };
for (let round = 0; round < rounds; round += 1) {
  opened = [];
  for (let number = 0; number < sessions; number += 1) {
    opened.push((await client.sessions.createSession({ scenarioId })).session);
  }
  for (const [name, work] of Object.entries(works)) {
    const started = performance.now();
    const done = await work();
    best[name] = Math.max(best[name], (done * 1000) / (performance.now() - started));
  }
}
client.close();
console.log(JSON.stringify(best));
