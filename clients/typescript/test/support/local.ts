// Plays and replays sessions without a server. Each line of standard input is a task, each line of output its result.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { type Action, EngineError, loadEngine, TranscriptError } from "@peripety/client/engine";

interface Task {
  /** Plays these turns, and returns the bundle, the visible states, and the codes of refused turns. */
  play?: { document: string; seed: number; turns: Action[][]; viewers: (string | null)[] };
  /** Replays a bundle in base64, and returns its first false line and turn. */
  replay?: string;
}

const engine = await loadEngine();

function play({ document, seed, turns, viewers }: NonNullable<Task["play"]>): object {
  const game = engine.load(document).start({ seed });
  const refused: string[] = [];
  for (const actions of turns) {
    const { turn, chainHash, stateHash } = game;
    try {
      game.play(...actions);
    } catch (error) {
      assert(error instanceof EngineError, String(error));
      assert.deepEqual([game.turn, game.chainHash, game.stateHash], [turn, chainHash, stateHash]);
      refused.push(error.code);
    }
  }
  const views = viewers.map((viewer) => game.viewOf(viewer));
  const { turn, chainHash, stateHash, state, legalActions } = game;
  const bundle = Buffer.from(game.exportBundle()).toString("base64");
  return { bundle, turn, chainHash, stateHash, state, legalActions, views, refused };
}

async function replay(bundle: string): Promise<object> {
  try {
    const { turns, chainHash } = await engine.replay(Buffer.from(bundle, "base64"));
    return { turns, chainHash };
  } catch (error) {
    if (error instanceof TranscriptError) return { line: error.line, turn: error.turn };
    if (error instanceof EngineError) return { code: error.code, path: error.path };
    throw error;
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const task = JSON.parse(line) as Task;
  let result: object;
  try {
    result = task.play ? play(task.play) : await replay(task.replay!);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    result = { code: error.code, path: error.path };
  }
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
