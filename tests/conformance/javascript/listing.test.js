import assert from "node:assert/strict";
import { test } from "node:test";
import { collect, freshContainer, md5 } from "./support.js";

const TREE = ["a", "a/1", "a/2", "a/b/1", "a0", "b/1", "c/x/y", "z"];

async function tree(t) {
  const container = await freshContainer(t);
  for (const name of TREE) await container.uploadBlockBlob(name, name, name.length, { metadata: { first: name[0] } });
  return container;
}

test("flat listing by prefix, with what each item tells", async (t) => {
  const container = await tree(t);
  const all = await collect(container.listBlobsFlat({ includeMetadata: true }));
  assert.deepEqual(all.map((item) => item.name), TREE);
  assert.deepEqual(all.map((item) => item.metadata.first), TREE.map((name) => name[0]));
  const [item] = all;
  const properties = await container.getBlobClient("a").getProperties();
  assert.equal(item.properties.contentLength, 1);
  assert.equal(item.properties.blobType, "BlockBlob");
  assert.equal(item.properties.etag.replaceAll('"', ""), properties.etag.replaceAll('"', ""));
  assert.deepEqual(item.properties.lastModified, properties.lastModified);
  assert.deepEqual(item.properties.createdOn, properties.createdOn);
  assert.deepEqual(Buffer.from(item.properties.contentMD5), md5("a"));
  assert.equal(item.properties.accessTier, "Hot");
  assert.equal(item.properties.accessTierInferred, true);
  assert.equal(item.properties.serverEncrypted, true);
  assert.equal(item.properties.leaseState, "available");
  const some = await collect(container.listBlobsFlat({ prefix: "a/" }));
  assert.deepEqual(some.map((each) => each.name), ["a/1", "a/2", "a/b/1"]);
});

test("hierarchy by delimiter", async (t) => {
  const container = await tree(t);
  const walk = async (prefix) =>
    (await collect(container.listBlobsByHierarchy("/", { prefix }))).map((item) => `${item.kind} ${item.name}`).sort();
  assert.deepEqual(await walk(""), ["blob a", "blob a0", "blob z", "prefix a/", "prefix b/", "prefix c/"]);
  assert.deepEqual(await walk("a/"), ["blob a/1", "blob a/2", "prefix a/b/"]);
  assert.deepEqual(await walk("none"), []);
});

test("pages continue where they ended", async (t) => {
  const container = await tree(t);
  for (const maxPageSize of [1, 3, 7, 8, 9]) {
    const pages = await collect(container.listBlobsFlat().byPage({ maxPageSize }));
    const names = pages.map((page) => page.segment.blobItems.map((item) => item.name));
    assert.ok(names.every((page) => page.length <= maxPageSize));
    assert.deepEqual(names.flat(), TREE);
  }
  const hierarchy = [];
  for await (const page of container.listBlobsByHierarchy("/").byPage({ maxPageSize: 2 })) {
    const names = [...page.segment.blobItems, ...(page.segment.blobPrefixes ?? [])].map((item) => item.name);
    assert.ok(names.length <= 2);
    hierarchy.push(...names.sort());
  }
  assert.deepEqual(hierarchy, ["a", "a/", "a0", "b/", "c/", "z"]);
});
