/** Replay of a bundle: every turn is played again, and compared with its record. */

import { canonicalize, type Json, type JsonObject, TranscriptError, type VerifiedTranscript, verifyTranscript } from "../transcript.js";
import { type Core, EngineError } from "./core.js";
import { compileScenario } from "./scenario.js";
import { extendChain, playTurn, startChain } from "./turn.js";

const MECHANICS = ["action_resolved", "rule_failed", "world_resolved"];

/**
 * Verify a bundle and replay its turns.
 *
 * @throws TranscriptError - the first false line, and its turn.
 * @throws EngineError - `UNSUPPORTED_KEY` if only the server can replay the scenario.
 */
export async function replayTranscript(core: Core, bundle: Uint8Array): Promise<VerifiedTranscript> {
  let verified: VerifiedTranscript | undefined;
  let defect: TranscriptError | undefined;
  try {
    verified = await verifyTranscript(bundle);
  } catch (error) {
    if (!(error instanceof TranscriptError)) throw error;
    defect = error;
  }
  // A turn that breaks the rules is reported before a later line that is false in another way.
  if (defect === undefined || defect.turn !== undefined || defect.line === 1) replayTurns(core, bundle, defect);
  if (verified === undefined) throw defect;
  return verified;
}

function replayTurns(core: Core, bundle: Uint8Array, defect: TranscriptError | undefined): void {
  const lines = new TextDecoder().decode(bundle).split("\n");
  let header: JsonObject;
  try {
    header = JSON.parse(lines[0]!) as JsonObject;
  } catch {
    return;
  }
  if (defect?.line === 1 && core.sha256(lines[1] ?? "") !== header["spec_hash"]) return;
  const program = compileScenario(core, lines[1]!);
  const first = header["certificate_hash"] === null ? 3 : 4;
  const seed = Number(header["first_seed"]);
  let state = core.newState(program.compiled, seed);
  let chain = startChain(core, seed, program.specHash);
  const turns = defect?.turn === undefined ? Number(header["turns"]) : defect.turn - 1;
  for (let turn = 1; turn <= turns; turn += 1) {
    const line = first + turn - 1;
    const refuse = (problem: string): never => {
      throw new TranscriptError(problem, line, turn);
    };
    let recorded: { record: JsonObject; events: JsonObject[] };
    try {
      recorded = JSON.parse(lines[line - 1]!) as typeof recorded;
    } catch {
      return;
    }
    const { record, events } = recorded;
    try {
      if (record["seed"] !== undefined) {
        const snapshot = JSON.parse(core.get("snapshot", state)) as JsonObject;
        state = core.loadState(program.compiled, canonicalize({ ...snapshot, seed: String(record["seed"]) }));
      }
      const played = playTurn(core, state, record);
      chain = extendChain(core, chain, played.record);
      const end = events.at(-1)!;
      const computed: JsonObject = {
        state_hash: played.stateHash,
        chain_hash: chain,
        status: { ...played.status },
        legal_actions: [...played.legalActions],
        changes: [...played.changes],
      };
      if (!isSame(record, played.record)) refuse(`the turn cannot have been played like that: ${differenceOf(record, played.record)} differs`);
      for (const kinds of [MECHANICS, ["rolled"]]) {
        const select = (event: JsonObject): boolean => kinds.includes(String(event["kind"]));
        if (!isSame(events.filter(select), played.events.filter(select))) refuse(`events ${kinds.join(", ")} differ from the computed ones`);
      }
      for (const [name, value] of Object.entries(computed)) {
        if (end[name] === undefined || !isSame(end[name], value)) refuse(`${name} differs from the computed one`);
      }
    } catch (error) {
      if (!(error instanceof EngineError || error instanceof TypeError || error instanceof RangeError)) throw error;
      refuse(`the turn cannot be replayed: ${error.message}`);
    }
  }
}

function isSame(one: Json, other: Json): boolean {
  return canonicalize(one) === canonicalize(other);
}

/** Return the names of the members that differ. */
function differenceOf(one: JsonObject, other: JsonObject): string {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  const differing = [...names].filter((name) => !(name in one && name in other && isSame(one[name]!, other[name]!)));
  return differing.sort().join(", ");
}
