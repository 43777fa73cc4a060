import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AccountSASPermissions, AccountSASResourceTypes, AccountSASServices, AnonymousCredential, BlobClient,
  BlobSASPermissions, BlobServiceClient, ContainerClient, ContainerSASPermissions, SASProtocol,
  generateAccountSASQueryParameters, generateBlobSASQueryParameters,
} from "@azure/storage-blob";
import { collect, credential, freshBlob, freshContainer, HOUR, refused, service, text, unique } from "./support.js";

const options = { retryOptions: { maxTries: 1 } };
const soon = () => new Date(Date.now() + HOUR);

function blobWith(blob, values) {
  const sas = generateBlobSASQueryParameters(
    { containerName: blob.containerName, blobName: blob.name, expiresOn: soon(), ...values },
    credential,
  );
  return new BlobClient(`${blob.url}?${sas}`, new AnonymousCredential(), options).getBlockBlobClient();
}

test("a blob SAS gives what its letters say", async (t) => {
  const blob = await freshBlob(t);
  const reader = blobWith(blob, { permissions: BlobSASPermissions.parse("r") });
  assert.equal(await text(reader), "the first content");
  await refused(403, "AuthorizationPermissionMismatch", () => reader.setMetadata({ a: "1" }));
  await refused(403, "AuthorizationPermissionMismatch", () => reader.delete());
  const writer = blobWith(blob, { permissions: BlobSASPermissions.parse("w") });
  await writer.upload("new", 3);
  await refused(403, "AuthorizationPermissionMismatch", () => writer.download());
  await blobWith(blob, { permissions: BlobSASPermissions.parse("d") }).delete();
  assert.equal(await blob.exists(), false);
});

test("a blob SAS is bound to its time, address and protocol", async (t) => {
  const blob = await freshBlob(t);
  const permissions = BlobSASPermissions.parse("r");
  const expired = blobWith(blob, { permissions, expiresOn: new Date(Date.now() - HOUR) });
  await refused(403, "AuthenticationFailed", () => expired.download());
  const elsewhere = blobWith(blob, { permissions, ipRange: { start: "10.0.0.1", end: "10.0.0.9" } });
  await refused(403, "AuthorizationSourceIPMismatch", () => elsewhere.download());
  const secure = blobWith(blob, { permissions, protocol: SASProtocol.Https });
  if (blob.url.startsWith("http:")) await refused(403, "AuthorizationProtocolMismatch", () => secure.download());
  const both = blobWith(blob, { permissions, protocol: SASProtocol.HttpsAndHttp });
  assert.equal(await text(both), "the first content");
});

test("a container SAS lists and reads its container", async (t) => {
  const container = await freshContainer(t);
  await container.uploadBlockBlob("b", "x", 1);
  const sas = generateBlobSASQueryParameters(
    { containerName: container.containerName, permissions: ContainerSASPermissions.parse("rl"), expiresOn: soon() },
    credential,
  );
  const client = new ContainerClient(`${container.url}?${sas}`, new AnonymousCredential(), options);
  assert.deepEqual((await collect(client.listBlobsFlat())).map((item) => item.name), ["b"]);
  assert.equal(await text(client.getBlobClient("b")), "x");
  await refused(403, "AuthorizationPermissionMismatch", () => client.deleteBlob("b"));
});

test("a stored policy gives the SAS its permissions", async (t) => {
  const blob = await freshBlob(t);
  const container = service.getContainerClient(blob.containerName);
  await container.setAccessPolicy(undefined, [
    { id: "reader", accessPolicy: { startsOn: new Date(Date.now() - HOUR), expiresOn: soon(), permissions: "r" } },
  ]);
  const client = blobWith(blob, { identifier: "reader", expiresOn: undefined });
  assert.equal(await text(client), "the first content");
  await refused(403, "AuthorizationPermissionMismatch", () => client.delete());
});

test("an account SAS is bound to services, resource types and letters", async (t) => {
  const container = await freshContainer(t);
  const client = (values) => {
    const sas = generateAccountSASQueryParameters(
      {
        expiresOn: soon(),
        permissions: AccountSASPermissions.parse("rwdlac"),
        services: AccountSASServices.parse("b").toString(),
        resourceTypes: AccountSASResourceTypes.parse("sco").toString(),
        ...values,
      },
      credential,
    );
    return new BlobServiceClient(`${service.url}?${sas}`, new AnonymousCredential(), options);
  };
  const all = client({}).getContainerClient(container.containerName);
  await all.uploadBlockBlob("b", "x", 1);
  assert.equal((await collect(all.listBlobsFlat())).length, 1);
  const named = (values) => client(values).getContainerClient(container.containerName);
  await refused(403, "AuthorizationServiceMismatch", () => named({ services: "q" }).getProperties());
  await refused(403, "AuthorizationResourceTypeMismatch", () => named({ resourceTypes: "o" }).getProperties());
  const reader = named({ permissions: AccountSASPermissions.parse("r") });
  await refused(403, "AuthorizationPermissionMismatch", () => reader.uploadBlockBlob("c", "x", 1));
});

test("anonymous reading follows the level of the container", async (t) => {
  const blob = await freshBlob(t);
  const container = service.getContainerClient(blob.containerName);
  const anonymous = new ContainerClient(container.url, new AnonymousCredential(), options);
  const anonymousBlob = anonymous.getBlobClient(blob.name);
  await refused(401, "NoAuthenticationInformation", () => anonymousBlob.download());
  await container.setAccessPolicy("blob");
  assert.equal(await text(anonymousBlob), "the first content");
  await assert.rejects(collect(anonymous.listBlobsFlat()));
  await container.setAccessPolicy("container");
  assert.equal((await collect(anonymous.listBlobsFlat())).length, 1);
  await assert.rejects(anonymous.getBlockBlobClient(unique("new")).upload("x", 1));
});
