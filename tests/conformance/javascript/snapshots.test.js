// Snapshots as applications use them: taken, listed, read and deleted.

import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, freshBlob, freshContainer, refused, text } from "./support.js";

test("a snapshot stays as the blob was, and goes when it is deleted", async (t) => {
  const blob = await freshBlob(t);
  const { snapshot } = await blob.createSnapshot({ metadata: { taken: "first" } });
  await blob.upload("other", 5);
  const taken = blob.withSnapshot(snapshot);
  assert.equal(await text(taken), "the first content");
  const properties = await taken.getProperties();
  assert.deepEqual(properties.metadata, { taken: "first" });
  assert.equal(properties.leaseState, undefined);
  await refused(409, "SnapshotsPresent", () => blob.delete());
  await taken.delete();
  await refused(404, "BlobNotFound", () => taken.download());
  await blob.delete();
});

test("snapshots are listed before their blob, and deleted with it", async (t) => {
  const container = await freshContainer(t);
  const blob = container.getBlockBlobClient("b");
  await blob.upload("content", 7);
  const first = await blob.createSnapshot();
  const second = await blob.createSnapshot();
  const listed = await collect(container.listBlobsFlat({ includeSnapshots: true }));
  assert.deepEqual(
    listed.map((item) => item.snapshot || undefined),
    [first.snapshot, second.snapshot, undefined],
  );
  await blob.delete({ deleteSnapshots: "include" });
  assert.deepEqual(await collect(container.listBlobsFlat({ includeSnapshots: true })), []);
});
