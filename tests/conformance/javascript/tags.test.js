import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { freshContainer } from "./support.js";

test("tags come back, and blobs are found by them", async (t) => {
  const container = await freshContainer(t);
  const label = randomUUID();
  for (const [name, size] of [["a", "1"], ["b", "2"], ["c", "3"]]) {
    await container.getBlockBlobClient(name).upload("", 0, { tags: { label, size } });
  }
  const blob = container.getBlobClient("a");
  assert.deepEqual((await blob.getTags()).tags, { label, size: "1" });
  await blob.setTags({ label, size: "9" });
  const found = [];
  const pages = container.findBlobsByTags(`label = '${label}' AND size > '1'`).byPage({ maxPageSize: 2 });
  for await (const page of pages) {
    assert.ok(page.blobs.length <= 2);
    found.push(...page.blobs.map((item) => item.name));
  }
  assert.deepEqual(found.sort(), ["a", "b", "c"]);
});
