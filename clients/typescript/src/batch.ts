/** Validation of many specifications over one stream. */

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Client as Stub } from "@connectrpc/connect";
import { linkedController } from "./calls.js";
import {
  type ScenarioService,
  SpecItemSchema,
  type SpecItem,
  type SpecVerdict,
  type ValidateScenariosRequestSchema,
  type ValidationOptionsSchema,
} from "./gen/peripety/api/scenario/v1/scenario_pb.js";
import type { StreamOptions } from "./streams.js";

/** A specification to validate. */
export interface SpecDocument {
  /** Id of 1 to 256 bytes, which the verdict repeats. */
  readonly id: string;
  /** JSON in UTF-8, JSON text, or an object that is written as JSON. */
  readonly spec: Uint8Array | string | object;
}

const ITEMS_PER_MESSAGE = 256;
const BYTES_PER_MESSAGE = 512 * 1024;
/** Longer specifications are rejected for their length, so the rest is not sent. */
const MOST_BYTES = 1024 * 1024 + 1;

/** Validate documents; see `Client.validate`. */
export async function* validateDocuments(
  scenarios: Stub<typeof ScenarioService>,
  documents: Iterable<SpecDocument> | AsyncIterable<SpecDocument>,
  validation: MessageInitShape<typeof ValidationOptionsSchema>,
  { signal, timeoutMs }: Pick<StreamOptions, "signal" | "timeoutMs">,
): AsyncGenerator<SpecVerdict, void> {
  const { controller, unlink } = linkedController(signal);
  // An error of the documents is thrown as it is, not as an error of the call that it ends.
  let failure: { readonly error: unknown } | undefined;
  const requests = batchRequests(documents, validation, (error) => {
    failure = { error };
    controller.abort(error);
  });
  try {
    for await (const { verdicts } of scenarios.validateScenarios(requests, { signal: controller.signal, timeoutMs })) {
      yield* verdicts;
    }
  } catch (error) {
    throw failure ? failure.error : error;
  } finally {
    unlink();
  }
}

async function* batchRequests(
  documents: Iterable<SpecDocument> | AsyncIterable<SpecDocument>,
  options: MessageInitShape<typeof ValidationOptionsSchema>,
  fail: (error: unknown) => void,
): AsyncGenerator<MessageInitShape<typeof ValidateScenariosRequestSchema>> {
  let items: SpecItem[] = [];
  let size = 0;
  try {
    for await (const { id, spec } of documents) {
      const item = create(SpecItemSchema, { itemId: id, spec: encode(spec).subarray(0, MOST_BYTES) });
      items.push(item);
      size += item.spec.length;
      if (items.length === ITEMS_PER_MESSAGE || size >= BYTES_PER_MESSAGE) {
        yield { options, items };
        [items, size] = [[], 0];
      }
    }
  } catch (error) {
    fail(error);
    throw error;
  }
  if (items.length > 0) yield { options, items };
}

function encode(spec: SpecDocument["spec"]): Uint8Array {
  if (spec instanceof Uint8Array) return spec;
  return new TextEncoder().encode(typeof spec === "string" ? spec : JSON.stringify(spec));
}
