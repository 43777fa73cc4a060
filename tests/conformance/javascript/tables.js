// What the tests of the Table service share: its clients, and fresh tables.

import { randomUUID } from "node:crypto";
import { TableClient, TableServiceClient } from "@azure/data-tables";

const DEVELOPMENT_ENDPOINT = "http://127.0.0.1:10002/devstoreaccount1";
const given = process.env.CONFORMANCE_CONNECTION_STRING ?? "UseDevelopmentStorage=true";
const tablesConnection =
  given.includes("TableEndpoint=") || given.startsWith("UseDevelopmentStorage")
    ? given
    : `${given}TableEndpoint=${DEVELOPMENT_ENDPOINT};`;

// Retries would hide a failure that a test looks for, and a fault that it should find.
const options = { retryOptions: { maxRetries: 0 }, allowInsecureConnection: true };

export const tables = TableServiceClient.fromConnectionString(tablesConnection, options);

export function uniqueTable(prefix = "js") {
  return `${prefix}${randomUUID().replaceAll("-", "").slice(0, 12)}`;
}

export function tableClient(name) {
  return TableClient.fromConnectionString(tablesConnection, name, options);
}

/** A fresh table that is deleted when the test ends. */
export async function freshTable(t) {
  const name = uniqueTable();
  await tables.createTable(name);
  t.after(() => tables.deleteTable(name));
  return tableClient(name);
}
