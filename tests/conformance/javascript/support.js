// What the tests share: the account under test, fresh containers, and how a refusal is expected.

import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { BlobSASPermissions, BlobServiceClient } from "@azure/storage-blob";

const given = process.env.CONFORMANCE_CONNECTION_STRING ?? "UseDevelopmentStorage=true";

// Retries would hide a failure that a test looks for, and a fault that it should find.
const options = { retryOptions: { maxTries: 1 } };

export const service = BlobServiceClient.fromConnectionString(given, options);
export const credential = service.credential;

export function unique(prefix) {
  return `${prefix}-${randomUUID().replaceAll("-", "").slice(0, 12)}`;
}

/** A fresh container that is deleted when the test ends, whatever leases it left. */
export async function freshContainer(t) {
  const container = service.getContainerClient(unique("js"));
  await container.create();
  t.after(async () => {
    try {
      await container.deleteIfExists();
    } catch (error) {
      if (error.statusCode !== 412) throw error;
      await container.getBlobLeaseClient().breakLease(0);
      await container.delete();
    }
  });
  return container;
}

export async function freshBlob(t, content = "the first content", uploadOptions = {}) {
  const container = await freshContainer(t);
  const blob = container.getBlockBlobClient("a blob");
  await blob.upload(content, Buffer.byteLength(content), uploadOptions);
  return blob;
}

/** The URL of a blob with a signature to read it, as the source of a request needs it. */
export function readable(blob) {
  const expiresOn = new Date(Date.now() + 3600 * 1000);
  return blob.generateSasUrl({ permissions: BlobSASPermissions.parse("r"), expiresOn });
}

export async function refused(status, code, call) {
  await assert.rejects(call, (error) => {
    assert.deepEqual(
      { status: error.statusCode, code: error.response?.headers.get("x-ms-error-code") },
      { status, code },
    );
    assert.ok(error.response.headers.get("x-ms-request-id"));
    return true;
  });
}

export async function text(blob, offset, count, downloadOptions) {
  const response = await blob.download(offset, count, downloadOptions);
  const parts = [];
  for await (const part of response.readableStreamBody) parts.push(part);
  return Buffer.concat(parts).toString();
}

export function md5(content) {
  return createHash("md5").update(content).digest();
}

export async function collect(iterator) {
  const items = [];
  for await (const item of iterator) items.push(item);
  return items;
}

export const ETAG = /^"0x[0-9A-F]+"$/;
export const HOUR = 3600 * 1000;
