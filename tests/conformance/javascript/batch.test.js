// Blob Batch through the client that writes and reads the parts itself.

import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, freshContainer, service } from "./support.js";

async function filled(t, ...names) {
  const container = await freshContainer(t);
  for (const name of names) await container.uploadBlockBlob(name, "content", 7);
  return container;
}

const names = async (container) => (await collect(container.listBlobsFlat())).map((blob) => blob.name);

test("a batch of the account deletes blobs of several containers", async (t) => {
  const [one, two] = [await filled(t, "a", "b c/ä+&%"), await filled(t, "d", "stays")];
  const blobs = [one.getBlobClient("a"), one.getBlobClient("b c/ä+&%"), two.getBlobClient("d")];
  const answer = await service.getBlobBatchClient().deleteBlobs(blobs);
  assert.equal(answer.subResponsesSucceededCount, 3);
  assert.deepEqual([await names(one), await names(two)], [[], ["stays"]]);
});

test("a part that fails tells why, under its own number", async (t) => {
  const container = await filled(t, "a");
  const blobs = ["absent", "a"].map((name) => container.getBlobClient(name));
  const answer = await container.getBlobBatchClient().deleteBlobs(blobs);
  assert.deepEqual([answer.subResponsesSucceededCount, answer.subResponsesFailedCount], [1, 1]);
  const [absent, present] = answer.subResponses;
  assert.deepEqual([absent.status, absent.errorCode, present.status], [404, "BlobNotFound", 202]);
  assert.match(absent.bodyAsText, /<Code>BlobNotFound<\/Code>/);
  assert.ok(present.headers.get("x-ms-request-id"));
});
