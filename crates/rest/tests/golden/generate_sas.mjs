// Makes shared access signatures with the official JavaScript SDKs, which can make those of older
// versions too.
//
//     npm install @azure/storage-blob@12.32.0 @azure/storage-queue@12.28.1 \
//         @azure/storage-file-share@12.28.0 @azure/storage-file-datalake@12.28.1 @azure/data-tables
//     node generate_sas.mjs > sas_javascript.json

import { createHmac } from "node:crypto";
import { createRequire } from "node:module";
import { writeSync } from "node:fs";

const require = createRequire(process.cwd() + "/");
const blobs = require("@azure/storage-blob");
const queues = require("@azure/storage-queue");
const files = require("@azure/storage-file-share");
const lake = require("@azure/storage-file-datalake");
const tables = require("@azure/data-tables");

const ACCOUNT = "goldenaccount";
const RAW_KEY = Buffer.from([...Array(64).keys()]);
const KEY = RAW_KEY.toString("base64");
const startsOn = new Date("2024-06-01T11:30:00Z");
const expiresOn = new Date("2024-06-01T12:30:00Z");
const ODD = "dir one/ü+plus;semi'quote'/100% & #=?.txt";
const SNAPSHOT = "2024-05-31T12:00:00.1234567Z";
const OID = "aaaaaaaa-0000-4000-8000-000000000001";
const TID = "bbbbbbbb-0000-4000-8000-000000000002";
const AGENT = "dddddddd-0000-4000-8000-000000000004";
const CASES = [];

function add(name, service, path, token, { kind = "service", query = "", headers = {} } = {}) {
  const encoded = path.split("/").map(encodeURIComponent).join("/");
  const all = query ? `${token}&${query}` : `${token}`;
  CASES.push({
    name: `javascript ${name}`,
    service,
    account: ACCOUNT,
    path_style: false,
    method: "GET",
    url: `https://${ACCOUNT}.${service}.core.windows.net/${encoded}?${all}`,
    headers,
    kind,
    delegated_user: null,
    signed: all.split("&").map((pair) => pair.split("=")[0]),
  });
}

// What the server issues: a key derived from the account key and the fields.
function delegationKey(service) {
  const fields = [OID, TID, "2024-06-01T11:00:00Z", "2024-06-02T11:00:00Z", service, "2024-11-04", ""];
  const text = "user delegation key\n" + fields.map((field) => `${field.length}:${field}\n`).join("");
  return {
    signedObjectId: OID,
    signedTenantId: TID,
    signedStartsOn: new Date(fields[2]),
    signedExpiresOn: new Date(fields[3]),
    signedService: service,
    signedVersion: fields[5],
    value: createHmac("sha256", RAW_KEY).update(text).digest("base64"),
  };
}

const ipRange = { start: "127.0.0.0", end: "127.0.0.9" };
const overrides = {
  cacheControl: "no-store",
  contentDisposition: 'attachment; filename="ü.txt"',
  contentEncoding: "gzip",
  contentLanguage: "de",
  contentType: "text/plain; charset=utf-8",
};
const full = { startsOn, expiresOn, ipRange, ...overrides };

{
  const key = new blobs.StorageSharedKeyCredential(ACCOUNT, KEY);
  const make = (values, credential = key) =>
    blobs.generateBlobSASQueryParameters(values, ...(credential === key ? [key] : [credential, ACCOUNT])).toString();
  const read = blobs.BlobSASPermissions.parse("r");
  const letters = blobs.BlobSASPermissions.parse("racwd");
  const list = blobs.ContainerSASPermissions.parse("rl");
  const bothProtocols = { protocol: blobs.SASProtocol.HttpsAndHttp };
  const user = delegationKey("b");
  const versions = [
    "2015-04-05", "2017-11-09", "2018-11-09", "2019-12-12", "2020-02-10", "2020-10-02", "2020-12-06", "2023-11-03",
    "2025-07-05", "2026-02-06", "2026-04-06",
  ];
  for (const version of versions) {
    const blob = { containerName: "c", blobName: ODD, permissions: letters, version, ...full, ...bothProtocols };
    const scope = version >= "2020-12-06" ? { encryptionScope: "scope1" } : {};
    add(`blob ${version}`, "blob", `c/${ODD}`, make({ ...blob, ...scope }));
    add(`container ${version}`, "blob", "c/b", make({ containerName: "c", permissions: list, version, expiresOn }));
    if (version >= "2018-11-09") {
      const snapshot = { containerName: "c", blobName: "b", snapshotTime: SNAPSHOT, permissions: read, version };
      const query = `snapshot=${SNAPSHOT}`;
      add(`snapshot ${version}`, "blob", "c/b", make({ ...snapshot, expiresOn }), { query });
      const delegated = { kind: "delegation", query };
      add(`user delegation snapshot ${version}`, "blob", "c/b", make({ ...snapshot, expiresOn }, user), delegated);
      const options = { kind: "delegation" };
      add(`user delegation blob ${version}`, "blob", `c/${ODD}`, make({ ...blob, ...scope }, user), options);
    }
    if (version >= "2020-02-10") {
      const agent = { preauthorizedAgentObjectId: AGENT, correlationId: TID };
      const values = { containerName: "c", permissions: list, version, expiresOn, ...agent };
      add(`user delegation agent ${version}`, "blob", "c/b", make(values, user), { kind: "delegation" });
    }
    if (version >= "2019-12-12") {
      const values = { containerName: "c", blobName: "b", versionId: SNAPSHOT, permissions: read, version, expiresOn };
      add(`version ${version}`, "blob", "c/b", make(values), { query: `versionid=${SNAPSHOT}` });
    }
    add(`policy ${version}`, "blob", "c/b", make({ containerName: "c", identifier: "p 1", version }), { kind: "policy" });
    const account = {
      services: "bqtf",
      resourceTypes: "sco",
      permissions: blobs.AccountSASPermissions.parse("rwdlacup"),
      version,
      startsOn,
      expiresOn,
      ipRange: { start: "127.0.0.1" },
      protocol: blobs.SASProtocol.Https,
      ...scope,
    };
    const token = blobs.generateAccountSASQueryParameters(account, key).toString();
    add(`account ${version}`, "blob", "c/b", token, { kind: "account" });
  }
}
{
  const key = new lake.StorageSharedKeyCredential(ACCOUNT, KEY);
  for (const version of ["2020-02-10", "2020-12-06", "2025-07-05"]) {
    const values = {
      fileSystemName: "c",
      pathName: "d/e",
      isDirectory: true,
      directoryDepth: 2,
      permissions: lake.DirectorySASPermissions.parse("racwdl"),
      expiresOn,
      version,
    };
    const token = lake.generateDataLakeSASQueryParameters(values, key).toString();
    add(`directory ${version}`, "blob", "c/d/e/f", token);
    const delegated = lake.generateDataLakeSASQueryParameters(values, delegationKey("b"), ACCOUNT).toString();
    add(`user delegation directory ${version}`, "blob", "c/d/e/f", delegated, { kind: "delegation" });
  }
}
{
  const key = new queues.StorageSharedKeyCredential(ACCOUNT, KEY);
  const permissions = queues.QueueSASPermissions.parse("raup");
  const make = (more) =>
    queues.generateQueueSASQueryParameters({ queueName: "q", permissions, startsOn, expiresOn, ipRange, ...more }, key);
  for (const version of ["2015-04-05", "2020-12-06", "2025-07-05"]) {
    add(`queue ${version}`, "queue", "q/messages", make({ version }).toString());
  }
}
{
  const key = new files.StorageSharedKeyCredential(ACCOUNT, KEY);
  const permissions = files.FileSASPermissions.parse("rcwd");
  for (const version of ["2015-04-05", "2020-12-06", "2025-07-05"]) {
    const file = { shareName: "s", filePath: "d/f ü", permissions, version, ...full };
    add(`file ${version}`, "file", "s/d/f ü", files.generateFileSASQueryParameters(file, key).toString());
    const share = { shareName: "s", permissions: files.ShareSASPermissions.parse("rl"), version, expiresOn };
    add(`share ${version}`, "file", "s/f", files.generateFileSASQueryParameters(share, key).toString());
  }
}
{
  const key = new tables.AzureNamedKeyCredential(ACCOUNT, KEY);
  const ranges = { startPartitionKey: "a +", startRowKey: "1", endPartitionKey: "ü", endRowKey: "9" };
  const values = { startsOn, expiresOn, ipRange, ...ranges, permissions: { query: true, add: true } };
  add("table", "table", "MyTable()", tables.generateTableSas("MyTable", key, values));
  add("table account", "table", "MyTable()", tables.generateAccountSas(key, { expiresOn }), { kind: "account" });
}
writeSync(1, JSON.stringify({ key: KEY, date: "Sat, 01 Jun 2024 12:00:00 GMT", cases: CASES }, null, 1) + "\n");
