/** Engine for Node.js: reads `engine.wasm` from the package. */

import { readFile } from "node:fs/promises";
import { Engine } from "./index.js";

export * from "./index.js";

/** Load the engine. One instance serves any number of scenarios and sessions. */
export async function loadEngine(): Promise<Engine> {
  const { instance } = await WebAssembly.instantiate(await readFile(new URL("engine.wasm", import.meta.url)));
  return new Engine(instance);
}
