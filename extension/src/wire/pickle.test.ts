import assert from "node:assert/strict";
import { test } from "node:test";

import { isPickle, readPickle } from "./pickle.ts";
import { OTHER, PickleFloat, PickleItems, type PickleValue } from "./pickle_value.ts";

/** A pickle of protocol 4 from texts, whose letters are bytes, and from bytes. */
function pickled(...parts: readonly (string | number)[]): Uint8Array<ArrayBuffer> {
  const bytes = parts.flatMap((part) =>
    typeof part === "number" ? [part] : [...part].map((letter) => letter.charCodeAt(0)),
  );
  return Uint8Array.from([0x80, 4, ...bytes]);
}

async function valueOf(...parts: readonly (string | number)[]): Promise<PickleValue> {
  return readPickle(pickled(...parts));
}

test("integers keep their sign and all of their 64 bits", async () => {
  assert.equal(await valueOf("K", 200, "."), 200);
  assert.equal(await valueOf("M", 1, 2, "."), 513);
  assert.equal(await valueOf("J", 0xff, 0xff, 0xff, 0xff, "."), -1);
  assert.equal(await valueOf(0x8a, 0, "."), 0);
  assert.equal(await valueOf(0x8a, 6, 0, 0, 0, 0, 0, 0x7f, "."), 0x7f0000000000);
  assert.equal(await valueOf(0x8a, 5, 0, 0, 0, 0, 0x80, "."), -(2 ** 39));
  assert.equal(await valueOf(0x8a, 8, 1, 0, 0, 0, 0, 0, 0, 0x40, "."), 2n ** 62n + 1n);
  assert.equal(
    await valueOf(0x8a, 9, 255, 255, 255, 255, 255, 255, 255, 255, 0, "."),
    2n ** 64n - 1n,
  );
  assert.equal(await valueOf(0x8a, 9, 0, 0, 0, 0, 0, 0, 0, 0, 1, "."), OTHER);
  assert.deepEqual(await valueOf("G", 0x40, 0x09, 0, 0, 0, 0, 0, 0, "."), new PickleFloat(3.125));
});

test("a value in the memo is one object wherever it is named", async () => {
  const root = await valueOf("](", "]", 0x94, "h", 0, "h", 0, "e.");

  assert.ok(root instanceof PickleItems);
  assert.equal(root.items.length, 3);
  assert.equal(root.items[0], root.items[2]);
});

test("what would run code is refused by its opcode", async () => {
  await assert.rejects(
    valueOf("cos\nsystem\n."),
    /byte 2: the file asks to run code \(opcode GLOBAL\)/,
  );
  await assert.rejects(valueOf(")}", 0x93, "."), /byte 4: .*opcode STACK_GLOBAL/);
  await assert.rejects(valueOf("))R."), /byte 4: .*opcode REDUCE/);
  await assert.rejects(valueOf("Q."), /byte 2: .*opcode BINPERSID/);
});

test("what is cut off or damaged is refused by its byte", async () => {
  await assert.rejects(
    valueOf("X", 9, 0, 0, 0, "abc"),
    /At byte 10: the file is truncated; 9 bytes/,
  );
  await assert.rejects(valueOf("}(K", 1, "u."), /At byte 6: a dict has a key without a value/);
  await assert.rejects(valueOf("]", 0xff, "."), /At byte 3: the opcode 0xff is not one/);
  await assert.rejects(readPickle(Uint8Array.of(0x80, 1, 0x2e)), /protocol 1, expected 2 to 5/);
});

test("the page can draw while a long pickle is read", async () => {
  const count = 6_000_000;
  const bytes = new Uint8Array(count + 4).fill("N".charCodeAt(0));
  bytes.set([0x80, 4, 0x28]);
  bytes[count + 2] = "t".charCodeAt(0);
  bytes[count + 3] = ".".charCodeAt(0);
  const news: number[] = [];

  const root = await readPickle(bytes, (done, total) => {
    assert.equal(total, bytes.length);
    news.push(done);
  });

  assert.ok(root instanceof PickleItems);
  assert.equal(root.items.length, count - 1);
  assert.ok(news.length > 0);
  assert.deepEqual(
    news,
    news.toSorted((left, right) => left - right),
  );
});

test("a pickle is known by its first byte", () => {
  assert.equal(isPickle(pickled("N.")), true);
  assert.equal(isPickle(new TextEncoder().encode("PK")), false);
  assert.equal(isPickle(new Uint8Array()), false);
});
