import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { freshBlob, freshContainer, refused } from "./support.js";

const A = "11111111-aaaa-4aaa-8aaa-111111111111";
const B = "22222222-bbbb-4bbb-8bbb-222222222222";

const KINDS = {
  blob: (t) => freshBlob(t),
  container: (t) => freshContainer(t),
};

for (const [kind, fresh] of Object.entries(KINDS)) {
  test(`life cycle of a ${kind} lease`, async (t) => {
    const resource = await fresh(t);
    const lease = resource.getBlobLeaseClient(A);
    const acquired = await lease.acquireLease(60);
    assert.equal(acquired.leaseId, A);
    let properties = await resource.getProperties();
    assert.deepEqual(
      [properties.leaseState, properties.leaseStatus, properties.leaseDuration],
      ["leased", "locked", "fixed"],
    );
    assert.equal(acquired.etag, properties.etag);
    const other = resource.getBlobLeaseClient(B);
    await refused(409, "LeaseAlreadyPresent", () => other.acquireLease(60));
    await refused(409, "LeaseIdMismatchWithLeaseOperation", () => other.renewLease());
    await refused(409, "LeaseIdMismatchWithLeaseOperation", () => other.releaseLease());
    await lease.renewLease();
    const changed = await lease.changeLease(B);
    assert.equal(changed.leaseId, B);
    const broken = await lease.breakLease(30);
    assert.ok(broken.leaseTime > 0 && broken.leaseTime <= 30);
    properties = await resource.getProperties();
    assert.deepEqual(
      [properties.leaseState, properties.leaseStatus, properties.leaseDuration],
      ["breaking", "locked", undefined],
    );
    await refused(409, "LeaseIsBrokenAndCannotBeRenewed", () => other.renewLease());
    await refused(409, "LeaseIsBreakingAndCannotBeAcquired", () => other.acquireLease(15));
    assert.equal((await lease.breakLease(0)).leaseTime, 0);
    assert.equal((await resource.getProperties()).leaseState, "broken");
    await other.releaseLease();
    assert.equal((await resource.getProperties()).leaseState, "available");
    await refused(409, "LeaseNotPresentWithLeaseOperation", () => other.breakLease(0));
  });
}

test("writes need the lease, reads do not", async (t) => {
  const blob = await freshBlob(t);
  await blob.getBlobLeaseClient(A).acquireLease(-1);
  const writes = [
    (conditions) => blob.upload("new", 3, { conditions }),
    (conditions) => blob.setMetadata({ a: "1" }, { conditions }),
    (conditions) => blob.setHTTPHeaders({ blobContentType: "a/b" }, { conditions }),
    (conditions) => blob.delete({ conditions }),
  ];
  for (const write of writes) {
    await refused(412, "LeaseIdMissing", () => write({}));
    await refused(412, "LeaseIdMismatchWithBlobOperation", () => write({ leaseId: B }));
  }
  await blob.getProperties();
  await blob.getProperties({ conditions: { leaseId: A } });
  await refused(412, "LeaseIdMismatchWithBlobOperation", () => blob.getProperties({ conditions: { leaseId: B } }));
  for (const write of writes) await write({ leaseId: A });
  assert.equal(await blob.exists(), false);
});

test("an id for a blob without a lease is refused", async (t) => {
  const blob = await freshBlob(t);
  const conditions = { leaseId: A };
  await refused(412, "LeaseNotPresentWithBlobOperation", () => blob.setMetadata({}, { conditions }));
  await refused(412, "LeaseNotPresentWithBlobOperation", () => blob.getProperties({ conditions }));
});

test("a leased container is deleted only with its id", async (t) => {
  const container = await freshContainer(t);
  await container.getBlobLeaseClient(A).acquireLease(-1);
  await container.uploadBlockBlob("b", "x", 1);
  await refused(412, "LeaseIdMissing", () => container.delete());
  await refused(412, "LeaseIdMismatchWithContainerOperation", () => container.delete({ conditions: { leaseId: B } }));
  await container.delete({ conditions: { leaseId: A } });
  assert.equal(await container.exists(), false);
});

test("a lease of fifteen seconds expires and can be taken over", async (t) => {
  const blob = await freshBlob(t);
  const lease = blob.getBlobLeaseClient(A);
  await lease.acquireLease(15);
  await sleep(15_500);
  const properties = await blob.getProperties();
  assert.deepEqual([properties.leaseState, properties.leaseStatus], ["expired", "unlocked"]);
  await blob.getBlobLeaseClient(B).acquireLease(15);
  await refused(409, "LeaseIdMismatchWithLeaseOperation", () => lease.renewLease());
});
