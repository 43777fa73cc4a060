// Query Entities through @azure/data-tables.

import assert from "node:assert/strict";
import { test } from "node:test";
import { odata } from "@azure/data-tables";
import { collect, refused } from "./support.js";
import { freshTable, tableClient, uniqueTable } from "./tables.js";

const BORN = new Date("1973-10-04T12:30:00.123Z");
const GUID = "c9da6455-213d-42c9-9a79-3e9149a57833";

async function people(t) {
  const table = await freshTable(t);
  await table.createEntity({
    partitionKey: "people",
    rowKey: "anna",
    age: 39,
    ratio: 3.1,
    visits: 2n ** 40n,
    married: true,
    born: BORN,
    id: { type: "Guid", value: GUID },
    bytes: new Uint8Array([0, 0xab, 0xff]),
    name: "Anna O'Neill",
  });
  await table.createEntity({
    partitionKey: "people",
    rowKey: "bert",
    age: 53,
    ratio: { type: "Double", value: "8.0" },
    visits: -5n,
    married: false,
    name: "Bert",
  });
  await table.createEntity({ partitionKey: "people", rowKey: "nobody" });
  return table;
}

async function grid(t) {
  const table = await freshTable(t);
  for (let partition = 0; partition < 4; partition++) {
    for (let row = 0; row < 10; row++) {
      await table.createEntity({ partitionKey: `p${partition}`, rowKey: `r${row}`, n: partition * 10 + row });
    }
  }
  return table;
}

async function rows(table, filter) {
  const found = await collect(table.listEntities({ queryOptions: { filter } }));
  return found.map((entity) => entity.rowKey);
}

test("filters that the odata tag writes find what they say", async (t) => {
  const table = await people(t);
  const name = "Anna O'Neill";
  for (const [filter, expected] of [
    [odata`name eq ${name}`, ["anna"]],
    [odata`age lt ${40}`, ["anna"]],
    [odata`ratio gt ${3}`, ["anna", "bert"]],
    [odata`ratio eq ${8}`, ["bert"]],
    [odata`ratio lt ${3.5}`, ["anna"]],
    [odata`visits lt ${0}`, ["bert"]],
    [odata`married eq ${true}`, ["anna"]],
    [odata`born eq ${BORN}`, ["anna"]],
    [odata`PartitionKey eq ${"people"} and RowKey eq ${"bert"}`, ["bert"]],
    [odata`not (married eq ${true})`, ["bert", "nobody"]],
    [odata`name ne ${""}`, ["anna", "bert"]],
    [odata`age eq ${"39"}`, []],
    [`visits eq ${2n ** 40n}L`, ["anna"]],
    [`id eq guid'${GUID}'`, ["anna"]],
    [`bytes eq X'00abff'`, ["anna"]],
    [`bytes eq binary'00ABFF'`, ["anna"]],
    ["married", ["anna"]],
    ["false", []],
  ]) {
    assert.deepEqual(await rows(table, filter), expected, filter);
  }
});

test("values come back with their types", async (t) => {
  const table = await people(t);
  const [anna] = await collect(table.listEntities({ queryOptions: { filter: "RowKey eq 'anna'" } }));
  assert.equal(anna.age, 39);
  assert.equal(anna.ratio, 3.1);
  assert.equal(anna.visits, 2n ** 40n);
  assert.equal(anna.married, true);
  assert.deepEqual(new Date(anna.born), BORN);
  assert.deepEqual(Buffer.from(anna.bytes), Buffer.from([0, 0xab, 0xff]));
  assert.equal(anna.name, "Anna O'Neill");
  const got = await table.getEntity("people", "anna");
  assert.equal(anna.etag, got.etag);
  assert.ok(anna.etag);
  assert.equal(anna.timestamp, got.timestamp);
});

test("select names the properties, and those that are not there are null", async (t) => {
  const table = await people(t);
  const queryOptions = { filter: "RowKey le 'bert'", select: ["age", "rowKey", "missing"] };
  const found = await collect(table.listEntities({ queryOptions }));
  const plain = found.map(({ etag, ...entity }) => entity);
  assert.deepEqual(plain, [
    { age: 39, rowKey: "anna", missing: null },
    { age: 53, rowKey: "bert", missing: null },
  ]);
});

test("pages have their size and go on from their token", async (t) => {
  const table = await grid(t);
  const whole = await collect(table.listEntities());
  assert.deepEqual(whole.map((entity) => entity.n), [...Array(40).keys()]);
  for (const maxPageSize of [1, 7, 20, 40, 1000]) {
    const pages = await collect(table.listEntities().byPage({ maxPageSize }));
    assert.equal(pages.length, Math.ceil(40 / maxPageSize));
    assert.deepEqual(pages.flat().map((entity) => entity.n), [...Array(40).keys()]);
  }
  const filter = odata`n ge ${15}`;
  const pages = table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize: 4 });
  const { value: first } = await pages.next();
  assert.equal(first.length, 4);
  const { continuationToken } = first;
  assert.ok(continuationToken);
  const rest = table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize: 100, continuationToken });
  const { value: second } = await rest.next();
  assert.deepEqual(second.map((entity) => entity.n), [...Array(21).keys()].map((at) => at + 19));
  assert.equal(second.continuationToken, undefined);
});

test("what cannot be answered is refused", async (t) => {
  const table = await grid(t);
  for (const filter of ["aaa bbb ccc", "n eq null", "n eq", "startswith(RowKey,'r')", "n eq 2147483648"]) {
    await refused(400, "InvalidInput", rows(table, filter));
  }
  await refused(400, "InvalidInput", collect(table.listEntities().byPage({ maxPageSize: 1001 })));
  await refused(404, "TableNotFound", collect(tableClient(uniqueTable()).listEntities()));
});
