import assert from "node:assert/strict";
import { test } from "node:test";
import { freshBlob, freshContainer, HOUR, refused, text } from "./support.js";

const OTHER = '"0x8D000000000CAFE"';

/** Each condition in a form that passes and one that fails for the blob as it is now. */
async function conditionsOf(blob) {
  const { etag, lastModified } = await blob.getProperties();
  const earlier = new Date(lastModified.getTime() - HOUR);
  const later = new Date(lastModified.getTime() + HOUR);
  return {
    ifMatch: { pass: etag, fail: OTHER },
    ifNoneMatch: { pass: OTHER, fail: etag },
    ifModifiedSince: { pass: earlier, fail: later },
    ifUnmodifiedSince: { pass: later, fail: earlier },
  };
}

const WRITES = {
  upload: (blob, conditions) => blob.upload("new", 3, { conditions }),
  setMetadata: (blob, conditions) => blob.setMetadata({ a: "1" }, { conditions }),
  setHTTPHeaders: (blob, conditions) => blob.setHTTPHeaders({ blobContentType: "a/b" }, { conditions }),
  acquireLease: (blob, conditions) => blob.getBlobLeaseClient().acquireLease(15, { conditions }),
  delete: (blob, conditions) => blob.delete({ conditions }),
};

for (const [name, write] of Object.entries(WRITES)) {
  for (const header of ["ifMatch", "ifNoneMatch", "ifModifiedSince", "ifUnmodifiedSince"]) {
    test(`${name} under ${header}`, async (t) => {
      const blob = await freshBlob(t);
      const conditions = await conditionsOf(blob);
      const { etag } = await blob.getProperties();
      await refused(412, "ConditionNotMet", () => write(blob, { [header]: conditions[header].fail }));
      assert.equal((await blob.getProperties()).etag, etag);
      await write(blob, { [header]: conditions[header].pass });
    });
  }
}

test("reads under every combination of conditions", async (t) => {
  const blob = await freshBlob(t);
  const conditions = await conditionsOf(blob);
  const choices = [undefined, "pass", "fail"];
  for (const ifMatch of choices)
    for (const ifUnmodifiedSince of choices)
      for (const ifNoneMatch of choices)
        for (const ifModifiedSince of choices) {
          const chosen = { ifMatch, ifUnmodifiedSince, ifNoneMatch, ifModifiedSince };
          const sent = Object.fromEntries(
            Object.entries(chosen).filter(([, how]) => how).map(([name, how]) => [name, conditions[name][how]]),
          );
          let expected = 200;
          const either = [ifNoneMatch, ifModifiedSince].filter(Boolean);
          if (either.length > 0 && !either.includes("pass")) expected = 304;
          if (ifMatch === "fail" || ifUnmodifiedSince === "fail") expected = 412;
          const status = await blob.getProperties({ conditions: sent }).then(
            () => 200,
            (error) => error.statusCode,
          );
          assert.deepEqual({ ...chosen, status }, { ...chosen, status: expected });
        }
});

test("if-none-match star creates but never overwrites", async (t) => {
  const blob = (await freshContainer(t)).getBlockBlobClient("b");
  await blob.upload("first", 5, { conditions: { ifNoneMatch: "*" } });
  await refused(409, "BlobAlreadyExists", () => blob.upload("second", 6, { conditions: { ifNoneMatch: "*" } }));
  assert.equal(await text(blob), "first");
  await refused(400, "UnsatisfiableCondition", () => blob.download(0, undefined, { conditions: { ifNoneMatch: "*" } }));
});

test("if-match star overwrites but never creates", async (t) => {
  const blob = (await freshContainer(t)).getBlockBlobClient("b");
  await refused(412, "ConditionNotMet", () => blob.upload("x", 1, { conditions: { ifMatch: "*" } }));
  assert.equal(await blob.exists(), false);
  await blob.upload("first", 5);
  await blob.upload("second", 6, { conditions: { ifMatch: "*" } });
  assert.equal(await text(blob), "second");
});

test("pairs that do not exist for writes are refused", async (t) => {
  const blob = await freshBlob(t);
  const { etag, lastModified } = await blob.getProperties();
  const pairs = [
    { ifMatch: etag, ifNoneMatch: OTHER },
    { ifMatch: etag, ifModifiedSince: new Date(lastModified.getTime() - HOUR) },
    { ifNoneMatch: OTHER, ifUnmodifiedSince: lastModified },
  ];
  for (const conditions of pairs) {
    await refused(400, "MultipleConditionHeadersNotSupported", () => blob.setMetadata({ a: "1" }, { conditions }));
  }
});

test("one of many writers with the same ETag wins", async (t) => {
  const blob = await freshBlob(t);
  const { etag } = await blob.getProperties();
  const attempts = await Promise.allSettled(
    Array.from({ length: 16 }, (_, index) =>
      blob.upload(`writer ${index}`, Buffer.byteLength(`writer ${index}`), { conditions: { ifMatch: etag } }),
    ),
  );
  const winners = attempts.flatMap((attempt, index) => (attempt.status === "fulfilled" ? [index] : []));
  assert.equal(winners.length, 1);
  assert.equal(await text(blob), `writer ${winners[0]}`);
  for (const attempt of attempts) {
    if (attempt.status === "rejected") assert.equal(attempt.reason.statusCode, 412);
  }
});
