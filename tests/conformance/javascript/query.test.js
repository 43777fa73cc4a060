import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, freshBlob, refused } from "./support.js";

const ITEMS = "Name,Price\nmouse,12.5\nkeyboard,x\nscreen,199\n";

test("a blob is queried, with its errors and progress", async (t) => {
  const blob = await freshBlob(t, ITEMS);
  const errors = [];
  const progress = [];
  const answer = await blob.query("SELECT name FROM BlobStorage WHERE price > 100", {
    inputTextConfiguration: { kind: "csv", recordSeparator: "\n", hasHeaders: true },
    outputTextConfiguration: { kind: "json", recordSeparator: "\n" },
    onError: (error) => errors.push([error.name, error.isFatal, error.position]),
    onProgress: ({ loadedBytes }) => progress.push(loadedBytes),
  });
  const answered = Buffer.concat(await collect(answer.readableStreamBody)).toString();
  assert.equal(answered, '{"Name":"screen"}\n');
  assert.deepEqual(errors, [["InvalidTypeConversion", false, 22]]);
  assert.deepEqual(progress, [ITEMS.length, ITEMS.length]);
});

test("an expression that cannot be parsed is refused", async (t) => {
  const blob = await freshBlob(t, ITEMS);
  await refused(400, "ErrorProcessingQueryExpression", () => blob.query("SELECT FROM"));
});
