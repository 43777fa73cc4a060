import assert from "node:assert/strict";
import { test } from "node:test";
import { freshContainer, refused } from "./support.js";

const PAGE = 512;

test("pages are written, cleared, told and read", async (t) => {
  const container = await freshContainer(t);
  const blob = container.getPageBlobClient("b");
  await blob.create(8 * PAGE, { blobSequenceNumber: 3, metadata: { key: "value" } });
  const uploaded = await blob.uploadPages("a".repeat(2 * PAGE), PAGE, 2 * PAGE);
  assert.equal(uploaded.blobSequenceNumber, 3);
  await blob.uploadPages("b".repeat(PAGE), 6 * PAGE, PAGE);
  await blob.clearPages(2 * PAGE, PAGE);

  const ranges = await blob.getPageRanges(0, 8 * PAGE);
  assert.deepEqual(ranges.pageRange, [
    { offset: PAGE, count: PAGE - 1 },
    { offset: 6 * PAGE, count: PAGE - 1 },
  ]);
  assert.equal(ranges.blobContentLength, 8 * PAGE);
  const listed = [];
  for await (const range of blob.listPageRanges(0, 8 * PAGE)) listed.push([range.start, range.end]);
  assert.deepEqual(listed, [
    [PAGE, 2 * PAGE - 1],
    [6 * PAGE, 7 * PAGE - 1],
  ]);

  const expected = Buffer.concat([
    Buffer.alloc(PAGE),
    Buffer.alloc(PAGE, "a"),
    Buffer.alloc(4 * PAGE),
    Buffer.alloc(PAGE, "b"),
    Buffer.alloc(PAGE),
  ]);
  assert.deepEqual(await blob.downloadToBuffer(), expected);

  await blob.resize(2 * PAGE);
  assert.equal((await blob.getProperties()).contentLength, 2 * PAGE);
  const updated = await blob.updateSequenceNumber("increment");
  assert.equal(updated.blobSequenceNumber, 4);
  const stale = { conditions: { ifSequenceNumberLessThan: 4 } };
  await refused(412, "SequenceNumberConditionNotMet", () => blob.uploadPages("c".repeat(PAGE), 0, PAGE, stale));
  await refused(416, "InvalidPageRange", () => blob.clearPages(2 * PAGE, PAGE));
});
