import assert from "node:assert/strict";
import { test } from "node:test";
import { ETAG, HOUR, collect, freshContainer, refused, service, unique } from "./support.js";

test("create, read, change and delete a container", async () => {
  const container = service.getContainerClient(unique("js"));
  const created = await container.create({ metadata: { purpose: "tests" }, access: "blob" });
  assert.match(created.etag, ETAG);
  assert.ok(created.requestId);
  const properties = await container.getProperties();
  assert.equal(properties.etag, created.etag);
  assert.deepEqual(properties.lastModified, created.lastModified);
  assert.deepEqual(properties.metadata, { purpose: "tests" });
  assert.equal(properties.blobPublicAccess, "blob");
  assert.equal(properties.leaseState, "available");
  assert.equal(properties.leaseStatus, "unlocked");
  assert.equal(properties.hasLegalHold, false);
  assert.equal(properties.hasImmutabilityPolicy, false);

  const changed = await container.setMetadata({ one: "1", two: "2" });
  assert.notEqual(changed.etag, created.etag);
  assert.deepEqual((await container.getProperties()).metadata, { one: "1", two: "2" });
  await container.setMetadata({});
  assert.deepEqual((await container.getProperties()).metadata, {});

  await refused(409, "ContainerAlreadyExists", () => container.create());
  assert.equal((await container.createIfNotExists()).succeeded, false);
  await container.delete();
  assert.equal(await container.exists(), false);
  assert.equal((await container.deleteIfExists()).succeeded, false);
  await refused(404, "ContainerNotFound", () => container.getProperties());
});

test("dates condition the deletion of a container", async (t) => {
  const container = await freshContainer(t);
  const { lastModified } = await container.getProperties();
  const earlier = new Date(lastModified.getTime() - HOUR);
  const later = new Date(lastModified.getTime() + HOUR);
  await refused(412, "ConditionNotMet", () => container.delete({ conditions: { ifModifiedSince: later } }));
  await refused(412, "ConditionNotMet", () => container.delete({ conditions: { ifUnmodifiedSince: earlier } }));
  await container.delete({ conditions: { ifUnmodifiedSince: later } });
  assert.equal(await container.exists(), false);
});

test("containers are listed by prefix, in pages, with metadata when asked for", async () => {
  const prefix = unique("list");
  const names = [0, 1, 2, 3, 4].map((index) => `${prefix}-${index}`);
  for (const name of names) await service.getContainerClient(name).create({ metadata: { name: name.at(-1) } });
  const listed = await collect(service.listContainers({ prefix, includeMetadata: true }));
  assert.deepEqual(listed.map((item) => item.name), names);
  assert.deepEqual(listed.map((item) => item.metadata.name), [..."01234"]);
  const plain = await collect(service.listContainers({ prefix }));
  assert.ok(plain.every((item) => !item.metadata));
  const pages = await collect(service.listContainers({ prefix }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.containerItems.length), [2, 2, 1]);
  assert.ok(pages[0].continuationToken);
  assert.ok(!pages[2].continuationToken);
  const rest = await collect(
    service.listContainers({ prefix }).byPage({ continuationToken: pages[0].continuationToken, maxPageSize: 100 }),
  );
  assert.deepEqual(rest.flatMap((page) => page.containerItems.map((item) => item.name)), names.slice(2));
  for (const name of names) await service.deleteContainer(name);
});

test("access policies and the public level come back", async (t) => {
  const container = await freshContainer(t);
  const startsOn = new Date(Math.floor(Date.now() / 1000) * 1000);
  const expiresOn = new Date(startsOn.getTime() + HOUR);
  await container.setAccessPolicy("container", [
    { id: "reader", accessPolicy: { startsOn, expiresOn, permissions: "r" } },
  ]);
  const stored = await container.getAccessPolicy();
  assert.equal(stored.blobPublicAccess, "container");
  assert.deepEqual(stored.signedIdentifiers, [
    { id: "reader", accessPolicy: { startsOn, expiresOn, permissions: "r" } },
  ]);
  await container.setAccessPolicy();
  const cleared = await container.getAccessPolicy();
  assert.equal(cleared.blobPublicAccess, undefined);
  assert.deepEqual(cleared.signedIdentifiers, []);
});
