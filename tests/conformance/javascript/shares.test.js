import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AccountSASPermissions, AccountSASResourceTypes, AccountSASServices, AnonymousCredential, ShareSASPermissions,
  ShareClient, ShareServiceClient, generateAccountSASQueryParameters, generateFileSASQueryParameters,
} from "@azure/storage-file-share";
import { collect, HOUR, refused, unique } from "./support.js";

const given = process.env.CONFORMANCE_CONNECTION_STRING ?? "";
const skip = given.includes("FileEndpoint=") ? false : "no FileEndpoint";
const options = { retryOptions: { maxTries: 1 } };
const service = skip ? undefined : ShareServiceClient.fromConnectionString(given, options);
const credential = service?.credential;
const soon = () => new Date(Date.now() + HOUR);
const SDDL = "O:SYG:BAD:P(A;OICI;FA;;;BA)(A;;0x1200a9;;;BU)";

async function freshShare(t, createOptions) {
  const share = service.getShareClient(unique("js"));
  await share.create(createOptions);
  t.after(async () => {
    try {
      await share.deleteIfExists({ deleteSnapshots: "include-leased" });
    } catch (error) {
      if (error.statusCode !== 412) throw error;
      await share.getShareLeaseClient().breakLease({ breakPeriod: 0 }).catch(() => {});
      await share.delete({ deleteSnapshots: "include-leased" });
    }
  });
  return share;
}

test("a share is created, described and deleted", { skip }, async (t) => {
  const share = await freshShare(t, { metadata: { name: "value" }, quota: 3, accessTier: "Hot" });
  await refused(409, "ShareAlreadyExists", () => share.create());
  assert.equal((await share.createIfNotExists()).succeeded, false);
  let properties = await share.getProperties();
  assert.deepEqual(properties.metadata, { name: "value" });
  assert.equal(properties.quota, 3);
  assert.equal(properties.accessTier, "Hot");
  assert.deepEqual(properties.protocols, { smbEnabled: true });
  await share.setMetadata({ a: "1" });
  await share.setProperties({ quotaInGB: 4, accessTier: "Cool" });
  properties = await share.getProperties();
  assert.deepEqual(properties.metadata, { a: "1" });
  assert.deepEqual([properties.quota, properties.accessTier], [4, "Cool"]);
  assert.equal((await share.getStatistics()).shareUsageBytes, 0);
  await share.delete();
  await refused(404, "ShareNotFound", () => share.getProperties());
  assert.equal((await share.deleteIfExists()).succeeded, false);
  assert.equal(await share.exists(), false);
});

test("a share of NFS has a root squash", { skip }, async (t) => {
  const share = await freshShare(t, { protocols: { nfsEnabled: true }, rootSquash: "AllSquash" });
  const properties = await share.getProperties();
  assert.deepEqual(properties.protocols, { nfsEnabled: true });
  assert.equal(properties.rootSquash, "AllSquash");
});

test("shares are listed in pages, with snapshots and metadata", { skip }, async (t) => {
  const prefix = unique("list");
  const names = [1, 2, 3].map((number) => `${prefix}-${number}`);
  for (const name of names) {
    await service.createShare(name, { metadata: { name } });
    t.after(() => service.deleteShare(name, { deleteSnapshots: "include" }));
  }
  const { snapshot } = await service.getShareClient(names[1]).createSnapshot();
  const pages = await collect(service.listShares({ prefix, includeMetadata: true }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.shareItems.map((item) => item.name)), [names.slice(0, 2), names.slice(2)]);
  assert.deepEqual(pages[0].shareItems[0].metadata, { name: names[0] });
  const all = await collect(service.listShares({ prefix, includeSnapshots: true }));
  assert.deepEqual(
    all.map((item) => [item.name, item.snapshot]),
    [[names[0], undefined], [names[1], snapshot], [names[1], undefined], [names[2], undefined]],
  );
});

test("a snapshot keeps what the share was", { skip }, async (t) => {
  const share = await freshShare(t, { metadata: { state: "one" } });
  const { snapshot } = await share.createSnapshot();
  await share.setMetadata({ state: "two" });
  const then = share.withSnapshot(snapshot);
  assert.deepEqual((await then.getProperties()).metadata, { state: "one" });
  await refused(409, "ShareHasSnapshots", () => share.delete());
  await then.delete();
  await refused(404, "ShareSnapshotNotFound", () => then.getProperties());
  await share.delete();
});

test("leases guard shares and their snapshots", { skip }, async (t) => {
  const share = await freshShare(t);
  const lease = share.getShareLeaseClient();
  await lease.acquireLease(-1);
  await refused(412, "LeaseIdMissing", () => share.setMetadata({ a: "b" }));
  await share.setMetadata({ a: "b" }, { leaseAccessConditions: { leaseId: lease.leaseId } });
  assert.equal((await share.getProperties()).leaseState, "leased");
  await lease.releaseLease();
  const { snapshot } = await share.createSnapshot();
  const guarded = share.withSnapshot(snapshot).getShareLeaseClient();
  await guarded.acquireLease(15);
  await refused(409, "DeleteShareWhenSnapshotLeased", () => share.delete({ deleteSnapshots: "include" }));
  await guarded.breakLease({ breakPeriod: 0 });
  await share.delete({ deleteSnapshots: "include" });
});

test("policies come back", { skip }, async (t) => {
  const share = await freshShare(t);
  const accessPolicy = { startsOn: new Date("2026-01-01T00:00:00Z"), expiresOn: soon(), permissions: "rwd" };
  await share.setAccessPolicy([{ id: "one", accessPolicy }]);
  const { signedIdentifiers } = await share.getAccessPolicy();
  assert.deepEqual(signedIdentifiers, [{ id: "one", accessPolicy }]);
});

test("security descriptors are kept by their keys", { skip }, async (t) => {
  const share = await freshShare(t);
  const { filePermissionKey } = await share.createPermission(SDDL);
  assert.match(filePermissionKey, /^\d{20}\*\d{20}$/);
  assert.equal((await share.getPermission(filePermissionKey)).permission, SDDL);
  const binary = await share.getPermission(filePermissionKey, { filePermissionFormat: "Binary" });
  const again = await share.createPermission({ permission: binary.permission, format: "Binary" });
  assert.equal(again.filePermissionKey, filePermissionKey);
  await refused(400, "FileInvalidPermission", () => share.createPermission("D:(A;;FA;;;WD)"));
  await refused(400, "FileInvalidPermissionKey", () => share.getPermission(`${"0".repeat(20)}*${"0".repeat(20)}`));
});

test("signatures give what their letters say", { skip }, async (t) => {
  const share = await freshShare(t);
  const account = generateAccountSASQueryParameters({
    expiresOn: soon(),
    permissions: AccountSASPermissions.parse("r"),
    resourceTypes: AccountSASResourceTypes.parse("c").toString(),
    services: AccountSASServices.parse("f").toString(),
  }, credential);
  const reader = new ShareClient(`${share.url}?${account}`, new AnonymousCredential(), options);
  await reader.getProperties();
  await refused(403, "AuthorizationPermissionMismatch", () => reader.setMetadata({ a: "b" }));
  const own = generateFileSASQueryParameters({
    shareName: share.name,
    expiresOn: soon(),
    permissions: ShareSASPermissions.parse("rwd"),
  }, credential);
  const holder = new ShareClient(`${share.url}?${own}`, new AnonymousCredential(), options);
  const { filePermissionKey } = await holder.createPermission(SDDL);
  assert.equal((await holder.getPermission(filePermissionKey)).permission, SDDL);
  await refused(403, "AuthorizationFailure", () => holder.getProperties());
});

test("the properties of the service come back", { skip }, async () => {
  const properties = await service.getProperties();
  assert.equal(typeof properties.hourMetrics.enabled, "boolean");
  await service.setProperties({ protocol: { smb: { multichannel: { enabled: false } } } });
  assert.equal((await service.getProperties()).protocol.smb.multichannel.enabled, false);
});
