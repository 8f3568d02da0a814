// Validates one document per line over one stream.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { connect, PeripetyError, type SpecDocument } from "@peripety/client";

/** Read lines only as fast as the server accepts documents. */
async function* documents(): AsyncGenerator<SpecDocument> {
  let line = 0;
  for await (const spec of createInterface(createReadStream("batch.jsonl"))) {
    line += 1;
    yield { id: `line ${line}`, spec };
  }
}

const client = connect(process.env.PERIPETY_ADDRESS ?? "127.0.0.1:50051");
for await (const { itemId, accepted, findings, error } of client.validate(documents())) {
  if (error) {
    console.log(`${itemId}: not validated: ${PeripetyError.fromItem(error).message}`);
  } else if (accepted) {
    console.log(`${itemId}: accepted`);
  } else {
    const { code, path, message } = findings!.findings[0]!;
    console.log(`${itemId}: rejected: ${code} ${path} ${message}`);
  }
}
client.close();
