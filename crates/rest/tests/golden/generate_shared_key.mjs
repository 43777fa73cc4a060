// Captures requests that the official JavaScript SDKs sign with Shared Key.
//
//     npm install @azure/storage-blob@12.32.0 @azure/storage-queue@12.28.1 \
//         @azure/storage-file-share@12.28.0 @azure/storage-file-datalake@12.28.1 @azure/data-tables
//     node generate_shared_key.mjs > shared_key_javascript.json
//
// Nothing is sent: the HTTP client of each pipeline keeps the request and fails.

import { createRequire } from "node:module";
import { writeSync } from "node:fs";

const FIXED = Date.UTC(2024, 5, 1, 12, 0, 0);
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...args) {
    super(...(args.length ? args : [FIXED]));
  }
  static now() {
    return FIXED;
  }
};
const GUID = "11111111-2222-4333-8444-555555555555";
globalThis.crypto.randomUUID = () => GUID;

const require = createRequire(process.cwd() + "/");
const blobs = require("@azure/storage-blob");
const queues = require("@azure/storage-queue");
const files = require("@azure/storage-file-share");
const lake = require("@azure/storage-file-datalake");
const tables = require("@azure/data-tables");

const KEY = Buffer.from([...Array(64).keys()]).toString("base64");
const ODD = "dir one/ü+plus;semi~tilde(paren)'quote'/100% & #=?.txt";
const METADATA = { a_b: "1", a1: "two words", ab: "x,y", _a: "z", Upper: "case" };
const CASES = [];

class Captured extends Error {}

function capturing() {
  const seen = [];
  return {
    seen,
    async sendRequest(request) {
      seen.push(request);
      throw new Captured("captured");
    },
  };
}

// What Node's HTTP client puts on the wire beside the headers that the pipeline set.
function wireHeaders(request) {
  const headers = {};
  // The storage clients wrap the header collection in the one of their previous HTTP library.
  const raw = request.headers.toJSON ? request.headers.toJSON() : request.headers.rawHeaders();
  for (const [name, value] of Object.entries(raw)) headers[name.toLowerCase()] = value;
  delete headers["user-agent"];
  delete headers["accept-encoding"];
  if (typeof request.body === "string" && !("content-length" in headers)) {
    headers["content-length"] = String(Buffer.byteLength(request.body));
  }
  if (!request.body && ["PUT", "POST"].includes(request.method)) headers["content-length"] ??= "0";
  return headers;
}

async function capture(service, style, account, makeClient, calls) {
  for (const [name, call] of Object.entries(calls)) {
    const client = capturing();
    try {
      const result = await call(makeClient(client));
      if (result?.next) await result.next();
    } catch (error) {
      if (!client.seen.length) throw error;
    }
    const request = client.seen[0];
    const url = new URL(request.url);
    CASES.push({
      name: `javascript ${service} ${style}: ${name}`,
      service,
      account,
      path_style: style === "path",
      method: request.method,
      url: url.href,
      headers: wireHeaders(request),
    });
  }
}

const blobCalls = {
  "list containers": (c) => c.listContainers({ prefix: "a+b &c=ü" }),
  "service properties": (c) => c.getProperties(),
  "create container": (c) => c.getContainerClient("container").create({ metadata: METADATA }),
  "list blobs": (c) =>
    c.getContainerClient("container").listBlobsFlat({ prefix: "a b/c", includeTags: true, includeMetadata: true }),
  "put blob": (c) =>
    c.getContainerClient("container").getBlockBlobClient(ODD).upload("hello", 5, {
      metadata: METADATA,
      blobHTTPHeaders: { blobContentType: "text/plain", blobContentLanguage: "de", blobContentEncoding: "gzip" },
    }),
  "put empty blob": (c) => c.getContainerClient("container").getBlockBlobClient("empty").upload("", 0),
  "get range if match": (c) =>
    c.getContainerClient("container").getBlobClient(ODD).download(1, 3, { conditions: { ifMatch: '"0x8D"' } }),
  "delete if unmodified": (c) =>
    c.getContainerClient("container").getBlobClient(ODD).delete({
      conditions: { ifUnmodifiedSince: new Date("2024-05-31T00:00:00Z"), ifNoneMatch: '"x"' },
    }),
  "properties of a version": (c) =>
    c.getContainerClient("container").getBlobClient("b").withVersion("2024-05-31T12:00:00.1234567Z").getProperties(),
  "stage block": (c) => c.getContainerClient("container").getBlockBlobClient(ODD).stageBlock("AAAA+/==", "data", 4),
  "find by tags": (c) => c.findBlobsByTags("\"k\"='v +'"),
  "set tier": (c) => c.getContainerClient("container").getBlobClient(ODD).setAccessTier("Cool"),
};
const queueCalls = {
  "list queues": (c) => c.listQueues({ prefix: "a" }),
  create: (c) => c.getQueueClient("my-queue").create({ metadata: METADATA }),
  send: (c) => c.getQueueClient("my-queue").sendMessage("hello <&> ü", { visibilityTimeout: 3 }),
  receive: (c) => c.getQueueClient("my-queue").receiveMessages(),
  "delete message": (c) => c.getQueueClient("my-queue").deleteMessage("id", "AgAAAAMAAAAAAAAA+/=="),
};
const fileCalls = {
  "list shares": (c) => c.listShares(),
  "create share": (c) => c.getShareClient("share").create({ metadata: METADATA }),
  "upload range": (c) =>
    c.getShareClient("share").getDirectoryClient("d e").getFileClient("f ü+1.txt").uploadRange("12345", 0, 5),
  download: (c) => c.getShareClient("share").getDirectoryClient("d e").getFileClient("f ü+1.txt").download(0, 10),
  list: (c) => c.getShareClient("share").getDirectoryClient("d e").listFilesAndDirectories({ prefix: "a b" }),
};
const dfsCalls = {
  "create file": (c) => c.getFileSystemClient("fs").getFileClient("dir/f ü").create(),
  append: (c) => c.getFileSystemClient("fs").getFileClient("dir/f").append("abc", 0, 3),
  "list paths": (c) => c.getFileSystemClient("fs").listPaths({ path: "dir" }),
};
const entity = { partitionKey: "p k'1", rowKey: "r/ü+", value: 1 };
const tableCalls = {
  "create table": (c) => c.createTable(),
  insert: (c) => c.createEntity(entity),
  get: (c) => c.getEntity("p k'1", "r/ü+"),
  merge: (c) => c.updateEntity(entity, "Merge"),
  upsert: (c) => c.upsertEntity(entity, "Replace"),
  delete: (c) => c.deleteEntity("p k'1", "r/ü+"),
  query: (c) => c.listEntities({ queryOptions: { filter: "value gt 1 and name eq 'a+b'", select: ["value"] } }),
  acl: (c) => c.getAccessPolicy(),
  batch: (c) => c.submitTransaction([["create", entity]]),
};

const retryOptions = { maxTries: 1 };
const kinds = {
  blob: [blobs.BlobServiceClient, blobs.StorageSharedKeyCredential, blobCalls, 10000],
  queue: [queues.QueueServiceClient, queues.StorageSharedKeyCredential, queueCalls, 10001],
  file: [files.ShareServiceClient, files.StorageSharedKeyCredential, fileCalls, 10003],
  dfs: [lake.DataLakeServiceClient, lake.StorageSharedKeyCredential, dfsCalls, 10000],
};
for (const [service, [Client, Credential, calls, port]] of Object.entries(kinds)) {
  for (const [style, account] of [["host", "goldenaccount"], ["path", "devstoreaccount1"]]) {
    const url =
      style === "host" ? `https://${account}.${service}.core.windows.net` : `http://127.0.0.1:${port}/${account}`;
    const make = (httpClient) => new Client(url, new Credential(account, KEY), { httpClient, retryOptions });
    await capture(service, style, account, make, calls);
  }
}
for (const [style, account] of [["host", "goldenaccount"], ["path", "devstoreaccount1"]]) {
  const url = style === "host" ? `https://${account}.table.core.windows.net` : `http://127.0.0.1:10002/${account}`;
  const credential = new tables.AzureNamedKeyCredential(account, KEY);
  const options = (httpClient) => ({ httpClient, retryOptions: { maxRetries: 0 }, allowInsecureConnection: true });
  const make = (httpClient) => new tables.TableClient(url, "MyTable", credential, options(httpClient));
  await capture("table", style, account, make, tableCalls);
}
writeSync(1, JSON.stringify({ key: KEY, date: "Sat, 01 Jun 2024 12:00:00 GMT", cases: CASES }, null, 1) + "\n");
