// Tables and entities as applications use them: types, conditions, batches, signatures.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AzureNamedKeyCredential,
  AzureSASCredential,
  TableClient,
  TableTransaction,
  generateTableSas,
  odata,
} from "@azure/data-tables";
import { collect } from "./support.js";
import { freshTable, tableClient, tables, uniqueTable } from "./tables.js";

// By the code in the body; the SDK reads none where the operation speaks XML.
async function refused(status, code, call) {
  await assert.rejects(call, (error) => {
    const told = error.details?.odataError?.code ?? error.code ?? error.response.headers.get("x-ms-error-code");
    assert.deepEqual({ status: error.statusCode, code: told }, { status, code });
    return true;
  });
}

const keys = (rowKey = "r", partitionKey = "p") => ({ partitionKey, rowKey });

test("tables are created, listed and deleted", async () => {
  const name = uniqueTable();
  await tables.createTable(name);
  const listed = await collect(tables.listTables({ queryOptions: { filter: odata`TableName eq ${name}` } }));
  assert.deepEqual(listed.map((table) => table.name), [name]);
  // The SDK takes a table that is there for one that it has made.
  await tables.createTable(name);
  await tables.deleteTable(name);
  await refused(404, "TableNotFound", () => tableClient(name).createEntity(keys()));
});

test("values come back with their type", async (t) => {
  const table = await freshTable(t);
  const entity = {
    ...keys("it's / fine".replaceAll("/", "|")),
    boolean: true,
    int: 42,
    double: 1.5,
    text: 'é😀 "quoted"\n',
    long: 9007199254740993n,
    date: new Date("2024-01-31T12:34:56.123Z"),
    binary: new Uint8Array([0, 1, 254, 255]),
    guid: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" },
    infinite: { type: "Double", value: "Infinity" },
    nothing: null,
  };
  await table.createEntity(entity);
  const found = await table.getEntity("p", entity.rowKey);
  for (const name of ["boolean", "int", "double", "text", "long", "date", "guid"]) {
    assert.deepEqual(found[name], entity[name], name);
  }
  assert.deepEqual(new Uint8Array(found.binary), entity.binary);
  assert.equal(found.infinite, "Infinity");
  assert.ok(!("nothing" in found));
  const typed = await table.getEntity("p", entity.rowKey, { disableTypeConversion: true });
  assert.deepEqual(typed.long, { type: "Int64", value: "9007199254740993" });
  assert.deepEqual(typed.int, { type: "Int32", value: "42" });
});

test("etags come with reads, lists and writes, and guard changes", async (t) => {
  const table = await freshTable(t);
  const created = await table.createEntity({ ...keys(), n: 1 });
  const found = await table.getEntity("p", "r");
  const [listed] = await collect(table.listEntities());
  assert.equal(found.etag, created.etag);
  assert.equal(listed.etag, created.etag);
  const updated = await table.updateEntity({ ...keys(), n: 2 }, "Replace", { etag: created.etag });
  assert.notEqual(updated.etag, created.etag);
  const stale = { etag: created.etag };
  await refused(412, "UpdateConditionNotSatisfied", () => table.updateEntity(keys(), "Merge", stale));
  await refused(412, "UpdateConditionNotSatisfied", () => table.deleteEntity("p", "r", stale));
  await refused(400, "InvalidInput", () => table.deleteEntity("p", "r", { etag: "nonsense" }));
  await table.deleteEntity("p", "r", { etag: updated.etag });
  await refused(404, "ResourceNotFound", () => table.getEntity("p", "r"));
  await refused(404, "ResourceNotFound", () => table.deleteEntity("p", "r"));
  await refused(404, "ResourceNotFound", () => table.updateEntity(keys()));
});

test("merges keep and replacements remove what is not sent", async (t) => {
  const table = await freshTable(t);
  await table.upsertEntity({ ...keys(), a: 1 }, "Merge");
  await table.upsertEntity({ ...keys(), b: 2 }, "Merge");
  assert.deepEqual(own(await table.getEntity("p", "r")), { a: 1, b: 2 });
  await table.upsertEntity({ ...keys(), c: 3 }, "Replace");
  assert.deepEqual(own(await table.getEntity("p", "r")), { c: 3 });
  await table.updateEntity({ ...keys(), d: 4 }, "Merge");
  assert.deepEqual(own(await table.getEntity("p", "r")), { c: 3, d: 4 });
  await refused(409, "EntityAlreadyExists", () => table.createEntity(keys()));
});

function own(entity) {
  const system = ["partitionKey", "rowKey", "etag", "timestamp", "odata.metadata"];
  return Object.fromEntries(Object.entries(entity).filter(([name]) => !system.includes(name)));
}

test("a transaction is done whole", async (t) => {
  const table = await freshTable(t);
  await table.createEntity({ ...keys("old"), n: 0 });
  const transaction = new TableTransaction();
  transaction.createEntity({ ...keys("new"), n: 1 });
  transaction.updateEntity({ ...keys("old"), n: 2 }, "Replace");
  transaction.upsertEntity({ ...keys("it's new"), n: 3 }, "Merge");
  const answer = await table.submitTransaction(transaction.actions);
  assert.equal(answer.status, 202);
  assert.deepEqual(answer.subResponses.map((part) => part.status), [204, 204, 204]);
  for (const part of answer.subResponses) assert.match(part.etag, /^W\/"datetime'/);
  assert.equal(answer.getResponseForEntity("new").status, 204);
  const found = await collect(table.listEntities());
  assert.deepEqual(found.map((entity) => [entity.rowKey, entity.n]), [["it's new", 3], ["new", 1], ["old", 2]]);
  const deleted = await table.submitTransaction([["delete", keys("new")], ["delete", keys("old")]]);
  assert.deepEqual(deleted.subResponses.map((part) => part.etag), [undefined, undefined]);
});

test("a transaction that fails does nothing", async (t) => {
  const table = await freshTable(t);
  await table.createEntity(keys("there"));
  const fail = (status, code, actions) => refused(status, code, () => table.submitTransaction(actions));
  await fail(409, "EntityAlreadyExists", [["create", keys("a")], ["create", keys("there")]]);
  await fail(404, "ResourceNotFound", [["create", keys("a")], ["delete", keys("missing")]]);
  await fail(400, "InvalidDuplicateRow", [["create", keys("a")], ["upsert", keys("a")]]);
  await fail(400, "PropertyValueTooLarge", [["create", { ...keys("a"), v: "x".repeat(40_000) }]]);
  const stale = { etag: `W/"datetime'2001-01-01T00%3A00%3A00Z'"` };
  await fail(412, "UpdateConditionNotSatisfied", [["update", keys("there"), "Merge", stale]]);
  assert.deepEqual((await collect(table.listEntities())).map((entity) => entity.rowKey), ["there"]);
});

test("a hundred operations fit a transaction", async (t) => {
  const table = await freshTable(t);
  const actions = (count) => Array.from({ length: count }, (_, row) => ["upsert", { ...keys(String(row)), row }]);
  const answer = await table.submitTransaction(actions(100));
  assert.equal(answer.subResponses.length, 100);
  await refused(400, "InvalidInput", () => table.submitTransaction(actions(101)));
});

test("limits have their codes", async (t) => {
  const table = await freshTable(t);
  const fail = (code, entity) => refused(400, code, () => table.createEntity({ ...keys(), ...entity }));
  await fail("PropertyValueTooLarge", { v: "x".repeat(32 * 1024 + 1) });
  await fail("PropertyNameInvalid", { "a-b": 1 });
  await fail("PropertyNameTooLong", { ["n".repeat(256)]: 1 });
  await fail("TooManyProperties", Object.fromEntries(Array.from({ length: 253 }, (_, at) => [`p${at}`, at])));
  await fail("OutOfRangeInput", { rowKey: "a/b" });
  await fail("OutOfRangeInput", { t: { type: "DateTime", value: "1600-01-01T00:00:00Z" } });
  await fail("InvalidInput", { g: { type: "Guid", value: "nonsense" } });
});

test("signatures give their letters, their keys and their policies", async (t) => {
  const table = await freshTable(t);
  const { account, key } = credentials();
  const credential = new AzureNamedKeyCredential(account, key);
  const sas = (options) =>
    generateTableSas(table.tableName, credential, { expiresOn: new Date(Date.now() + 3600e3), ...options });
  const client = (token) =>
    new TableClient(tables.url, table.tableName, new AzureSASCredential(token), {
      allowInsecureConnection: true,
      retryOptions: { maxRetries: 0 },
    });
  await table.createEntity(keys());
  const reader = client(sas({ permissions: { query: true } }));
  assert.equal((await reader.getEntity("p", "r")).rowKey, "r");
  await refused(403, "AuthorizationPermissionMismatch", () => reader.createEntity(keys("x")));
  const all = { query: true, add: true, update: true, delete: true };
  const bounded = client(sas({ permissions: all, startPartitionKey: "q", endPartitionKey: "q" }));
  await bounded.createEntity(keys("r", "q"));
  await bounded.submitTransaction([["upsert", keys("s", "q")]]);
  await refused(403, "AuthorizationFailure", () => bounded.getEntity("p", "r"));
  await refused(403, "AuthorizationFailure", () => bounded.upsertEntity(keys()));
  await refused(403, "AuthorizationFailure", () => bounded.submitTransaction([["upsert", keys()]]));
  assert.deepEqual((await collect(bounded.listEntities())).map((entity) => entity.partitionKey), ["q", "q"]);

  const expiry = new Date(Date.now() + 3600e3);
  await table.setAccessPolicy([{ id: "adders", accessPolicy: { start: undefined, expiry, permission: "a" } }]);
  const [policy] = await table.getAccessPolicy();
  assert.equal(policy.accessPolicy.permission, "a");
  const adder = client(generateTableSas(table.tableName, credential, { identifier: "adders" }));
  await adder.createEntity(keys("by policy"));
  await refused(403, "AuthorizationPermissionMismatch", () => adder.getEntity("p", "r"));
});

function credentials() {
  const given = process.env.CONFORMANCE_CONNECTION_STRING ?? "";
  const found = (name) => new RegExp(`${name}=([^;]+)`).exec(given)?.[1];
  const development = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
  return { account: found("AccountName") ?? "devstoreaccount1", key: found("AccountKey") ?? development };
}

test("properties of the service come back", async () => {
  const before = await tables.getProperties();
  await tables.setProperties({ cors: [] });
  assert.deepEqual((await tables.getProperties()).cors ?? [], []);
  await tables.setProperties({ cors: before.cors ?? [] });
  await refused(400, "InvalidQueryParameterValue", () => tables.getStatistics());
});
