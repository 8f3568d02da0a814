import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { canonicalize, TranscriptError, verifyTranscript } from "@peripety/client";
import { type Change, seal, splitLines, tamper } from "./support/kit.js";

interface Entry {
  turns: number;
  chain_hash: string;
  state_hash: string | null;
  tampered: Change[];
}

const { PERIPETY_TRANSCRIPTS } = process.env;
const FOLDER = PERIPETY_TRANSCRIPTS
  ? pathToFileURL(`${PERIPETY_TRANSCRIPTS}/`)
  : new URL("../../../../tests/data/transcripts/", import.meta.url);
const ENTRIES = Object.entries(JSON.parse(readFileSync(new URL("index.json", FOLDER), "utf8")) as Record<string, Entry>);

async function defectOf(bundle: Uint8Array): Promise<TranscriptError> {
  try {
    await verifyTranscript(bundle);
  } catch (error) {
    assert(error instanceof TranscriptError, String(error));
    return error;
  }
  return assert.fail("the bundle was accepted");
}

test("the kit is complete", () => assert(ENTRIES.length >= 20));

for (const [name, entry] of ENTRIES) {
  test(`${name} is verified`, async () => {
    const { chainHash, stateHash, turns } = await verifyTranscript(readFileSync(new URL(name, FOLDER)));
    assert.deepEqual({ chainHash, stateHash, turns }, {
      chainHash: entry.chain_hash,
      stateHash: entry.state_hash,
      turns: entry.turns,
    });
  });

  test(`${name} is refused where it was changed`, async () => {
    const bundle = readFileSync(new URL(name, FOLDER));
    assert(entry.tampered.length > 0);
    for (const change of entry.tampered) {
      const { line, turn, message } = await defectOf(tamper(bundle, change));
      assert.deepEqual({ line, turn }, { line: change.first_false_line, turn: change.first_false_turn }, `${change.name}: ${message}`);
    }
  });
}

test("a bundle is refused at every cut", async () => {
  const bundle = readFileSync(new URL("won.jsonl", FOLDER));
  for (let length = 0; length < bundle.length; length += 7) await defectOf(bundle.subarray(0, length));
});

test("text that only looks canonical is refused", async () => {
  const bundle = readFileSync(new URL("won.jsonl", FOLDER));
  const lines = splitLines(bundle);
  const prose = lines[2]!.indexOf('"narrative":"') + '"narrative":"'.length;
  for (const text of ['\\ud800', '\\u0041', "\ufeff\\/", "\\u001F"]) {
    const line = Buffer.concat([lines[2]!.subarray(0, prose), Buffer.from(text), lines[2]!.subarray(prose)]);
    assert.equal((await defectOf(seal(lines.with(2, line)))).line, 3, text);
  }
  const broken = Buffer.concat([lines[2]!.subarray(0, prose), Buffer.from([0xff]), lines[2]!.subarray(prose)]);
  assert.equal((await defectOf(seal(lines.with(2, broken)))).line, 3);
  const marked = Buffer.concat([Buffer.from("\ufeff"), bundle]);
  assert.equal((await defectOf(marked)).line, 1);
});

test("numbers and texts have the canonical form", () => {
  const cases: [Parameters<typeof canonicalize>[0], string][] = [
    [1.0, "1"],
    [0.1 + 0.2, "0.30000000000000004"],
    [2 ** 53, "9007199254740992"],
    [1e21, "1e+21"],
    [1e20, "100000000000000000000"],
    [1e-7, "1e-7"],
    [5e-324, "5e-324"],
    [-0, "0"],
    ["\b\t\n\f\r\"\\\u0000\u001f\u007f\u2028", '"\\b\\t\\n\\f\\r\\"\\\\\\u0000\\u001f\u007f\u2028"'],
    [{ "\ufb33": 1, "\u{1f600}": 2, "10": 3, "9": 4, __proto__x: [] }, '{"10":3,"9":4,"__proto__x":[],"\u{1f600}":2,"\ufb33":1}'],
    [JSON.parse('{"__proto__":null}'), '{"__proto__":null}'],
  ];
  for (const [value, text] of cases) assert.equal(canonicalize(value), text);
  assert.throws(() => canonicalize(Infinity), RangeError);
  assert.throws(() => canonicalize("\ud800"), RangeError);
});
