import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { connect, PeripetyError, verifyTranscript } from "@peripety/client";
import { EngineError, loadEngine, TranscriptError } from "@peripety/client/engine";
import { type Change, splitLines, tamper } from "./support/kit.js";

interface Entry {
  turns: number;
  chain_hash: string;
  state_hash: string | null;
  features: string[];
  tampered: Change[];
}

const FOLDER = new URL("../../../../tests/data/transcripts/", import.meta.url);
const ENTRIES = Object.entries(JSON.parse(readFileSync(new URL("index.json", FOLDER), "utf8")) as Record<string, Entry>);
const SCENARIO = readFileSync(new URL("../../../samples/scenario.json", import.meta.url), "utf8");
const isLowered = ({ features }: Entry): boolean => features.some((feature) => /^(lowered|spec):(clues|places|promises|statements)$/.test(feature));
const engine = await loadEngine();

test("most of the kit can be played here", () => assert(ENTRIES.filter(([, entry]) => !isLowered(entry)).length >= 20));

for (const [name, entry] of ENTRIES) {
  const bundle = readFileSync(new URL(name, FOLDER));
  if (isLowered(entry)) {
    test(`${name} needs a server, and the error names the key`, async () => {
      await assert.rejects(engine.replay(bundle), (error) => error instanceof EngineError && error.code === "UNSUPPORTED_KEY" && error.path !== "");
    });
    continue;
  }
  test(`${name} is replayed to the same hashes`, async () => {
    const { chainHash, stateHash, turns } = await engine.replay(bundle);
    assert.deepEqual([chainHash, stateHash, turns], [entry.chain_hash, entry.state_hash, entry.turns]);
  });

  test(`${name} is refused where it was changed`, async () => {
    for (const change of entry.tampered) {
      await assert.rejects(engine.replay(tamper(bundle, change)), (error) => {
        assert(error instanceof TranscriptError, String(error));
        assert.deepEqual([error.line, error.turn], [change.first_false_line, change.first_false_turn], `${change.name}: ${error.message}`);
        return true;
      });
    }
  });
}

test("a session has the hashes of its bundle, and its copy replays", async () => {
  const game = engine.load(SCENARIO).start({ seed: 7 });
  const before = { ...game };
  assert.throws(() => game.play({ actionId: "unknown" }), (error) => error instanceof EngineError && error.code === "UNKNOWN_ACTION");
  assert.deepEqual({ ...game }, before);
  while (game.status.kind === "ongoing") {
    const result = game.play({ actionId: game.legalActions[game.turn % game.legalActions.length]! });
    assert.equal(result.events.at(-1)!["kind"], "world_resolved");
  }
  assert.deepEqual(game.legalActions, []);
  assert.throws(() => game.play(), (error) => error instanceof EngineError && error.code === "RUN_ENDED");
  const bundle = game.exportBundle();
  const expected = { chainHash: game.chainHash, stateHash: game.stateHash, turns: game.turn, specHash: engine.load(SCENARIO).specHash };
  assert.deepEqual(await verifyTranscript(bundle), expected);
  assert.deepEqual(await engine.replay(bundle), expected);
});

test("a document that is not JSON, and a seed out of range, are refused", () => {
  assert.throws(() => engine.load("{"), (error) => error instanceof EngineError && error.code === "INVALID_JSON");
  assert.throws(() => engine.load(SCENARIO).start({ seed: 2 ** 53 }), RangeError);
  assert.throws(() => engine.load(SCENARIO).start().viewOf("nobody"), (error) => error instanceof EngineError && error.code === "UNKNOWN_ENTITY");
});

const address = process.env.PERIPETY_ADDRESS;

test("a server stores a session that was played here, and continues it", { skip: address === undefined }, async () => {
  const client = connect(address!);
  const game = engine.load(SCENARIO).start({ seed: 7 });
  game.play({ actionId: "tend" });
  game.play();
  const session = await client.importTranscript(game.exportBundle());
  assert.deepEqual([session.turn, session.chainHash, session.stateHash], [2n, game.chainHash, game.stateHash]);
  const [local] = [game.play({ actionId: "tend" })];
  for await (const { event } of client.play(session, { actions: [{ actionId: "tend" }] })) {
    if (event.case === "committed") assert.equal(event.value.stateHash, local.stateHash);
  }
  assert.equal(session.turn, 3n);
  client.close();
});

test("a server refuses a false session, and names its first false turn", { skip: address === undefined }, async () => {
  const client = connect(address!);
  const game = engine.load(SCENARIO).start({ seed: 7 });
  for (let turn = 0; turn < 3; turn += 1) game.play({ actionId: "tend" });
  const bundle = Buffer.from(game.exportBundle());
  const at = splitLines(bundle)[3]!.indexOf('"after":') + '"after":'.length;
  const change: Change = { name: "value", line: 4, at, delete: 0, insert: "9", is_resealed: true, first_false_line: 4, first_false_turn: 2 };
  await assert.rejects(client.importTranscript(tamper(bundle, change)), (error) => {
    assert(error instanceof PeripetyError && error.is("BUNDLE_INVALID"), String(error));
    assert(error.violations.length > 0 && error.violations.every(({ field }) => field.startsWith("line 4/")), JSON.stringify(error.violations));
    assert.match(error.message, /line 4: turn 2: /);
    return true;
  });
  client.close();
});
