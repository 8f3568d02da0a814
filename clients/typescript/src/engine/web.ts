/** Engine for browsers and bundlers: fetches `engine.wasm`, which bundlers copy because of its URL. */

import { Engine } from "./index.js";

export * from "./index.js";

/** Load the engine. One instance serves any number of scenarios and sessions. */
export async function loadEngine(): Promise<Engine> {
  const response = await fetch(new URL("engine.wasm", import.meta.url));
  if (!response.ok) throw new Error(`${response.url}: HTTP status ${response.status}; serve engine.wasm beside the scripts`);
  const { instance } = await WebAssembly.instantiate(await response.arrayBuffer());
  return new Engine(instance);
}
