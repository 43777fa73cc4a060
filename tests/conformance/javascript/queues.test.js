import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  AccountSASPermissions, AccountSASResourceTypes, AccountSASServices, AnonymousCredential, QueueClient,
  QueueSASPermissions, QueueServiceClient, SASProtocol, generateAccountSASQueryParameters,
  generateQueueSASQueryParameters,
} from "@azure/storage-queue";
import { collect, HOUR, refused, unique } from "./support.js";

const given = process.env.CONFORMANCE_CONNECTION_STRING ?? "UseDevelopmentStorage=true";
const skip = given.includes("QueueEndpoint=") || given.startsWith("UseDevelopmentStorage") ? false : "no QueueEndpoint";
const options = { retryOptions: { maxTries: 1 } };
const service = skip ? undefined : QueueServiceClient.fromConnectionString(given, options);
const credential = service?.credential;
const soon = () => new Date(Date.now() + HOUR);
const WEEK = 7 * 24 * HOUR;

async function freshQueue(t, createOptions) {
  const queue = service.getQueueClient(unique("js"));
  await queue.create(createOptions);
  t.after(() => queue.deleteIfExists());
  return queue;
}

async function one(queue, receiveOptions) {
  const { receivedMessageItems } = await queue.receiveMessages(receiveOptions);
  assert.equal(receivedMessageItems.length, 1);
  return receivedMessageItems[0];
}

const texts = (items) => items.map((item) => item.messageText);

test("a queue is created, described and deleted", { skip }, async (t) => {
  const queue = await freshQueue(t, { metadata: { Name: "value" } });
  assert.equal((await queue.create({ metadata: { name: "value" } }))._response.status, 204);
  await refused(409, "QueueAlreadyExists", () => queue.create({ metadata: { name: "other" } }));
  assert.equal((await queue.createIfNotExists({ metadata: { name: "value" } })).succeeded, false);
  let properties = await queue.getProperties();
  assert.deepEqual(properties.metadata, { name: "value" });
  assert.equal(properties.approximateMessagesCount, 0);
  await queue.setMetadata({ a: "1", b: "2" });
  properties = await queue.getProperties();
  assert.deepEqual(properties.metadata, { a: "1", b: "2" });
  await queue.setMetadata();
  assert.deepEqual((await queue.getProperties()).metadata ?? {}, {});
  await queue.delete();
  await refused(404, "QueueNotFound", () => queue.getProperties());
  assert.equal((await queue.deleteIfExists()).succeeded, false);
  assert.equal(await queue.exists(), false);
});

test("queues are listed in pages", { skip }, async (t) => {
  const prefix = unique("list");
  const names = [1, 2, 3].map((number) => `${prefix}-${number}`);
  for (const name of names) {
    await service.createQueue(name, { metadata: { name } });
    t.after(() => service.deleteQueue(name));
  }
  const pages = await collect(service.listQueues({ prefix, includeMetadata: true }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.queueItems.map((item) => item.name)), [names.slice(0, 2), names.slice(2)]);
  assert.deepEqual(pages[0].queueItems[0].metadata, { name: names[0] });
  const rest = await collect(service.listQueues({ prefix }).byPage({ continuationToken: pages[0].continuationToken }));
  assert.deepEqual(rest[0].queueItems.map((item) => item.name), names.slice(2));
});

test("a message is put, peeked at, got and deleted", { skip }, async (t) => {
  const queue = await freshQueue(t);
  const text = "text <&> ü \n 😀";
  const sent = await queue.sendMessage(text);
  assert.equal(sent.expiresOn - sent.insertedOn, WEEK);
  assert.ok(sent.messageId && sent.popReceipt);
  const { peekedMessageItems } = await queue.peekMessages({ numberOfMessages: 32 });
  assert.deepEqual(texts(peekedMessageItems), [text]);
  assert.equal(peekedMessageItems[0].dequeueCount, 0);
  const message = await one(queue, { visibilityTimeout: 100 });
  assert.deepEqual(
    { id: message.messageId, text: message.messageText, count: message.dequeueCount },
    { id: sent.messageId, text, count: 1 },
  );
  assert.ok(Math.abs(message.nextVisibleOn - Date.now() - 100_000) < 5000);
  assert.equal((await queue.receiveMessages()).receivedMessageItems.length, 0);
  assert.equal((await queue.getProperties()).approximateMessagesCount, 1);
  await queue.deleteMessage(message.messageId, message.popReceipt);
  await refused(404, "MessageNotFound", () => queue.deleteMessage(message.messageId, message.popReceipt));
});

test("a message comes back, and its receipts follow", { skip }, async (t) => {
  const queue = await freshQueue(t);
  await queue.sendMessage("x");
  const first = await one(queue, { visibilityTimeout: 1 });
  await sleep(1100);
  const second = await one(queue, { visibilityTimeout: 1 });
  assert.equal(second.dequeueCount, 2);
  await refused(404, "MessageNotFound", () => queue.deleteMessage(first.messageId, first.popReceipt));
  await sleep(1100);
  await queue.deleteMessage(second.messageId, second.popReceipt);
  assert.equal((await queue.peekMessages()).peekedMessageItems.length, 0);
});

test("a message is updated", { skip }, async (t) => {
  const queue = await freshQueue(t);
  const sent = await queue.sendMessage("old");
  const kept = await queue.updateMessage(sent.messageId, sent.popReceipt, undefined, 0);
  assert.deepEqual(texts((await queue.peekMessages()).peekedMessageItems), ["old"]);
  const updated = await queue.updateMessage(sent.messageId, kept.popReceipt, "new", 60);
  assert.ok(Math.abs(updated.nextVisibleOn - Date.now() - 60_000) < 5000);
  assert.equal((await queue.peekMessages()).peekedMessageItems.length, 0);
  await refused(404, "MessageNotFound", () => queue.updateMessage(sent.messageId, kept.popReceipt, "newer", 0));
  await queue.updateMessage(sent.messageId, updated.popReceipt, "newest", 0);
  assert.equal((await one(queue)).messageText, "newest");
});

test("messages are delayed, expire and live for ever", { skip }, async (t) => {
  const queue = await freshQueue(t);
  await queue.sendMessage("delayed", { visibilityTimeout: 1, messageTimeToLive: -1 });
  await queue.sendMessage("short", { messageTimeToLive: 1 });
  assert.deepEqual(texts((await queue.peekMessages({ numberOfMessages: 5 })).peekedMessageItems), ["short"]);
  await sleep(1200);
  const message = await one(queue, { numberOfMessages: 5 });
  assert.equal(message.messageText, "delayed");
  assert.equal(message.expiresOn.getUTCFullYear(), 9999);
});

test("many messages at once, and none after clearing", { skip }, async (t) => {
  const queue = await freshQueue(t);
  await Promise.all(Array.from({ length: 40 }, (_, number) => queue.sendMessage(String(number))));
  const { receivedMessageItems } = await queue.receiveMessages({ numberOfMessages: 32 });
  assert.equal(receivedMessageItems.length, 32);
  assert.equal((await queue.peekMessages({ numberOfMessages: 32 })).peekedMessageItems.length, 8);
  await queue.clearMessages();
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
  assert.equal((await queue.receiveMessages()).receivedMessageItems.length, 0);
});

test("consumers at the same time get different messages", { skip }, async (t) => {
  const queue = await freshQueue(t);
  await Promise.all(Array.from({ length: 64 }, (_, number) => queue.sendMessage(String(number))));
  const got = await Promise.all(Array.from({ length: 64 }, () => one(queue)));
  assert.equal(new Set(texts(got)).size, 64);
  await Promise.all(got.map((message) => queue.deleteMessage(message.messageId, message.popReceipt)));
  assert.equal((await queue.getProperties()).approximateMessagesCount, 0);
});

test("what is refused, by status and code", { skip }, async (t) => {
  const queue = await freshQueue(t);
  const [first, second] = [await queue.sendMessage("a"), await queue.sendMessage("b")];
  await refused(400, "OutOfRangeQueryParameterValue", () => queue.receiveMessages({ numberOfMessages: 33 }));
  await refused(400, "OutOfRangeQueryParameterValue", () => queue.peekMessages({ numberOfMessages: 0 }));
  await refused(400, "OutOfRangeQueryParameterValue", () => queue.receiveMessages({ visibilityTimeout: 0 }));
  await refused(400, "InvalidQueryParameterValue", () => queue.sendMessage("x", { messageTimeToLive: 0 }));
  await refused(413, "RequestBodyTooLarge", () => queue.sendMessage("x".repeat(65537)));
  await refused(400, "InvalidQueryParameterValue", () => queue.deleteMessage(first.messageId, "nonsense"));
  await refused(400, "PopReceiptMismatch", () => queue.deleteMessage(first.messageId, second.popReceipt));
  await refused(400, "InvalidResourceName", () => service.createQueue("UPPER"));
  await refused(400, "OutOfRangeInput", () => service.createQueue("ab"));
});

function withSas(queue, values) {
  const sas = generateQueueSASQueryParameters({ queueName: queue.name, expiresOn: soon(), ...values }, credential);
  return new QueueClient(`${queue.url}?${sas}`, new AnonymousCredential(), options);
}

test("a queue SAS gives what its letters say", { skip }, async (t) => {
  const queue = await freshQueue(t);
  await queue.sendMessage("x");
  const reader = withSas(queue, { permissions: QueueSASPermissions.parse("r") });
  assert.equal((await reader.peekMessages()).peekedMessageItems.length, 1);
  assert.equal((await reader.getProperties()).approximateMessagesCount, 1);
  await refused(403, "AuthorizationPermissionMismatch", () => reader.receiveMessages());
  await refused(403, "AuthorizationPermissionMismatch", () => reader.sendMessage("y"));
  const worker = withSas(queue, { permissions: QueueSASPermissions.parse("aup") });
  await worker.sendMessage("y");
  const message = await one(worker);
  const updated = await worker.updateMessage(message.messageId, message.popReceipt, "z", 0);
  await worker.deleteMessage(message.messageId, updated.popReceipt);
  await refused(403, "AuthorizationPermissionMismatch", () => worker.peekMessages());
  await assert.rejects(() => worker.clearMessages(), (error) => error.statusCode === 403);
  const expired = withSas(queue, { permissions: QueueSASPermissions.parse("r"), expiresOn: new Date(Date.now() - HOUR) });
  await refused(403, "AuthenticationFailed", () => expired.peekMessages());
  const elsewhere = { start: "10.0.0.1", end: "10.0.0.9" };
  const moved = withSas(queue, { permissions: QueueSASPermissions.parse("r"), ipRange: elsewhere });
  await refused(403, "AuthorizationSourceIPMismatch", () => moved.peekMessages());
  const both = withSas(queue, { permissions: QueueSASPermissions.parse("r"), protocol: SASProtocol.HttpsAndHttp });
  await both.peekMessages();
});

test("a stored policy gives the SAS its permissions", { skip }, async (t) => {
  const queue = await freshQueue(t);
  await queue.sendMessage("x");
  const accessPolicy = { startsOn: new Date(Date.now() - HOUR), expiresOn: soon(), permissions: "r" };
  await queue.setAccessPolicy([{ id: "reader", accessPolicy }]);
  const { signedIdentifiers } = await queue.getAccessPolicy();
  assert.equal(signedIdentifiers[0].id, "reader");
  assert.equal(signedIdentifiers[0].accessPolicy.permissions, "r");
  assert.equal(Number(signedIdentifiers[0].accessPolicy.expiresOn), Number(accessPolicy.expiresOn));
  const client = withSas(queue, { identifier: "reader", expiresOn: undefined });
  assert.equal((await client.peekMessages()).peekedMessageItems.length, 1);
  await refused(403, "AuthorizationPermissionMismatch", () => client.receiveMessages());
  await queue.setAccessPolicy([]);
  await refused(403, "AuthenticationFailed", () => client.peekMessages());
});

test("an account SAS is bound to services, resource types and letters", { skip }, async (t) => {
  const queue = await freshQueue(t);
  const client = (values) => {
    const sas = generateAccountSASQueryParameters(
      {
        expiresOn: soon(),
        permissions: AccountSASPermissions.parse("rwdlacup"),
        services: AccountSASServices.parse("q").toString(),
        resourceTypes: AccountSASResourceTypes.parse("sco").toString(),
        ...values,
      },
      credential,
    );
    return new QueueServiceClient(`${service.url}?${sas}`, new AnonymousCredential(), options).getQueueClient(queue.name);
  };
  const all = client({});
  await all.sendMessage("x");
  await all.clearMessages();
  await refused(403, "AuthorizationServiceMismatch", () => client({ services: "b" }).peekMessages());
  await refused(403, "AuthorizationResourceTypeMismatch", () => client({ resourceTypes: "s" }).peekMessages());
  const reader = client({ permissions: AccountSASPermissions.parse("r") });
  await refused(403, "AuthorizationPermissionMismatch", () => reader.sendMessage("x"));
});

test("properties of the service come back", { skip }, async (t) => {
  const before = await service.getProperties();
  t.after(() => service.setProperties({ cors: before.cors, hourMetrics: before.hourMetrics }));
  const hourMetrics = { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: { enabled: true, days: 3 } };
  const rule = {
    allowedOrigins: "http://js.example", allowedMethods: "GET", allowedHeaders: "*", exposedHeaders: "", maxAgeInSeconds: 7,
  };
  await service.setProperties({ hourMetrics, cors: [rule] });
  const after = await service.getProperties();
  assert.equal(after.hourMetrics.retentionPolicy.days, 3);
  assert.equal(after.cors[0].allowedOrigins, "http://js.example");
});
