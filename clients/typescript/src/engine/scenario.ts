/** Scenarios that the engine in WebAssembly can play, and the keys that only the server can lower. */

import { canonicalize, type Json, type JsonObject } from "../transcript.js";
import { type Core, type CoreProgram, EngineError } from "./core.js";

/** Keys of version 1.1 that are lowered to others before a scenario is compiled. The server does this. */
const SECTIONS = ["clues", "statements", "promises", "places"];
const STORY_OPERATIONS = ["reveal", "say", "promise", "keep", "break", "move"];
const EARLIER_WORDS = ["jsonlogic", "valueObject"];

/** A compiled scenario. */
export class Program {
  constructor(
    readonly core: Core,
    readonly compiled: CoreProgram,
    /** Document in canonical form. */
    readonly document: string,
    /** SHA-256 of the document. */
    readonly specHash: string,
    readonly spec: JsonObject,
  ) {}
}

/**
 * Compile a scenario.
 *
 * @throws EngineError - `UNSUPPORTED_KEY` if the scenario has keys that only the server can lower; or the error of the document.
 */
export function compileScenario(core: Core, document: string): Program {
  const spec = parseDocument(core, document);
  delete spec["$schema"];
  const [unsupported] = findUnsupported(spec);
  if (unsupported) {
    const [path, reason] = unsupported;
    throw new EngineError("UNSUPPORTED_KEY", `${path}: ${reason}; play this scenario on a server`, path);
  }
  const canonical = canonicalize(spec);
  return new Program(core, core.compile(canonical), canonical, core.sha256(canonical), spec);
}

/** Return a document as values. Canonical documents may have integers that the strict parser refuses. */
function parseDocument(core: Core, document: string): JsonObject {
  let value: Json;
  try {
    value = JSON.parse(document) as Json;
  } catch {
    value = null; // the strict parser reports the problem
  }
  if (!isObject(value) || canonicalize(value) !== document) value = JSON.parse(core.parse(document)) as Json;
  if (!isObject(value)) throw new EngineError("SCHEMA_TYPE", "a scenario is a JSON object");
  return value;
}

/** Yield the places of keys that WebAssembly cannot play, each with the reason. */
function* findUnsupported(spec: JsonObject): Generator<[string, string]> {
  for (const section of SECTIONS) {
    if (section in spec) yield [`/${section}`, "a key that the server lowers"];
  }
  for (const [index, entity] of objectsOf(spec["entities"]).entries()) {
    if ("place" in entity) yield [`/entities/${index}/place`, "a key that the server lowers"];
  }
  for (const [index, solution] of objectsOf(spec["solutions"]).entries()) {
    for (const step of objectsOf(solution["steps"])) {
      const moves = [step, step["otherwise"]].filter(isObject).map((move) => move["params"]).filter(isObject);
      const isDealt = moves.some((params) => Object.values(params).some((given) => isObject(given)));
      if (isDealt) yield [`/solutions/${index}/steps`, "a solution with the value of a deal, which the server lowers"];
    }
  }
  for (const section of ["actions", "random_events", "loss_conditions", "win_conditions"]) {
    for (const [index, rule] of objectsOf(spec[section]).entries()) {
      const place = `/${section}/${index}`;
      if ("once" in rule) yield [`${place}/once`, "a key that the server lowers"];
      yield* findUnsupportedEffects(rule["effects"], `${place}/effects`);
      for (const key of ["preconditions", "when"]) {
        if (isObject(rule[key]) && "jsonlogic" in rule[key]) yield [`${place}/${key}`, EARLIER];
      }
    }
  }
}

const EARLIER = "the earlier spelling; use the document that the server returns";

function* findUnsupportedEffects(effects: Json | undefined, place: string): Generator<[string, string]> {
  for (const [index, effect] of objectsOf(effects).entries()) {
    if ("once" in effect) yield [`${place}/${index}/once`, "a key that the server lowers"];
    if (STORY_OPERATIONS.includes(String(effect["op"]))) yield [`${place}/${index}/op`, `${effect["op"]} is an operation that the server lowers`];
    for (const word of EARLIER_WORDS) {
      if (word in effect) yield [`${place}/${index}/${word}`, EARLIER];
    }
    yield* findUnsupportedEffects(effect["effects"], `${place}/${index}/effects`);
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function objectsOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
