import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { freshContainer, refused, text } from "./support.js";

test("an upload in blocks comes back whole", async (t) => {
  const container = await freshContainer(t);
  const blob = container.getBlockBlobClient("b");
  const content = randomBytes(500_000);
  await blob.uploadData(content, { maxSingleShotSize: 1000, blockSize: 100_000, concurrency: 4 });
  assert.deepEqual(await blob.downloadToBuffer(), content);
  const { committedBlocks } = await blob.getBlockList("committed");
  assert.deepEqual(committedBlocks.map((block) => block.size), Array(5).fill(100_000));

  const id = (number) => Buffer.from(`block-${number}`).toString("base64");
  await blob.stageBlock(id(1), "one", 3);
  await blob.stageBlock(id(2), "two", 3);
  const staged = await blob.getBlockList("all");
  assert.deepEqual(staged.uncommittedBlocks.map((block) => block.name), [id(1), id(2)]);
  await refused(400, "InvalidBlockList", () => blob.commitBlockList([id(3)]));
  await blob.commitBlockList([id(2), id(1), id(2)]);
  assert.equal(await text(blob), "twoonetwo");
});

test("appends follow each other until the seal", async (t) => {
  const container = await freshContainer(t);
  const log = container.getAppendBlobClient("log");
  await log.createIfNotExists();
  assert.equal((await log.createIfNotExists()).succeeded, false);
  assert.equal((await log.appendBlock("one", 3)).blobAppendOffset, "0");
  const second = await log.appendBlock("two", 3, { conditions: { appendPosition: 3 } });
  assert.deepEqual([second.blobAppendOffset, second.blobCommittedBlockCount], ["3", 2]);
  await refused(412, "AppendPositionConditionNotMet", () =>
    log.appendBlock("x", 1, { conditions: { appendPosition: 3 } }),
  );
  await refused(412, "MaxBlobSizeConditionNotMet", () => log.appendBlock("x", 1, { conditions: { maxSize: 6 } }));
  assert.equal((await log.seal()).isSealed, true);
  await refused(409, "BlobIsSealed", () => log.appendBlock("x", 1));
  assert.equal((await log.getProperties()).isSealed, true);
  assert.equal(await text(log), "onetwo");
});
