import assert from "node:assert/strict";
import { test } from "node:test";
import { freshBlob, freshContainer, readable, refused, text } from "./support.js";

test("a copy is done when it is asked for", async (t) => {
  const source = await freshBlob(t, "copied", { metadata: { who: "source" } });
  const container = await freshContainer(t);
  const destination = container.getBlockBlobClient("copy");
  const poller = await destination.beginCopyFromURL(source.url, { intervalInMs: 100 });
  const done = await poller.pollUntilDone();
  assert.equal(done.copyStatus, "success");
  assert.equal(await text(destination), "copied");
  const properties = await destination.getProperties();
  assert.deepEqual(properties.metadata, { who: "source" });
  assert.equal(properties.copyId, done.copyId);
  assert.equal(properties.copySource, source.url);
  assert.equal(properties.copyProgress, "6/6");
});

test("a copy within its request", async (t) => {
  const source = await freshBlob(t, "copied");
  const container = await freshContainer(t);
  const destination = container.getBlockBlobClient("copy");
  const done = await destination.syncCopyFromURL(await readable(source), { tags: { a: "b" } });
  assert.equal(done.copyStatus, "success");
  assert.equal(await text(destination), "copied");
  assert.equal((await destination.getProperties()).tagCount, 1);
  const missing = await readable(container.getBlobClient("missing"));
  await refused(404, "CannotVerifyCopySource", () => destination.syncCopyFromURL(missing));
});

test("a blob from a URL, whole and in blocks", async (t) => {
  const source = await freshBlob(t, "0123456789");
  const container = await freshContainer(t);
  const destination = container.getBlockBlobClient("copy");
  await destination.syncUploadFromURL(await readable(source));
  assert.equal(await text(destination), "0123456789");
  await destination.stageBlockFromURL("YQ==", await readable(source), 2, 3);
  await destination.commitBlockList(["YQ=="]);
  assert.equal(await text(destination), "234");
});

test("pages are copied by their snapshots", async (t) => {
  const container = await freshContainer(t);
  const source = container.getPageBlobClient("disk");
  await source.create(1024);
  await source.uploadPages(Buffer.alloc(512, "a"), 0, 512);
  const { snapshot } = await source.createSnapshot();
  const destination = container.getPageBlobClient("backup");
  const copied = await destination.startCopyIncremental(source.withSnapshot(snapshot).url);
  assert.equal(copied.copyStatus, "success");
  const properties = await destination.getProperties();
  assert.equal(properties.isIncrementalCopy, true);
  const backup = destination.withSnapshot(properties.destinationSnapshot);
  assert.equal(await text(backup, 0, 512), "a".repeat(512));
  await refused(409, "OperationNotAllowedOnIncrementalCopyBlob", () => destination.download());
});
