import assert from "node:assert/strict";
import { test } from "node:test";

import { NOWHERE, readAddress, writeAddress, type Address } from "./address.ts";

test("what is written is read again", () => {
  const addresses: Address[] = [
    NOWHERE,
    { ...NOWHERE, window: [0, 123_456_789_012_345] },
    {
      window: [1000, 2000],
      span: [1200, 1400],
      kept: [
        { fromNs: 1200, toNs: 1400, name: "warm-up: 1st & 2nd = 50 %" },
        { fromNs: 1500, toNs: 1600, name: "Schritt #3" },
      ],
      pinned: ["stream:3", "thread:1234567890"],
      selected: { kind: "block", row: 7 },
      device: 3,
      event: 12,
      view: "memory-176_blocks-0_drawer-210",
    },
    { ...NOWHERE, window: [648_000_000_000_000, 1_944_000_000_000_000] },
    { ...NOWHERE, selected: { kind: "activity", row: 0 } },
  ];

  for (const address of addresses) {
    assert.deepEqual(readAddress(writeAddress(address)), { address, bad: [] });
  }
});

test("parts that say nothing are named and the rest is kept", () => {
  const { address, bad } = readAddress(
    "#t=5-2&select=block:7&select=soul:1&device=-1&x&event=1e3&view=memory&span=7-7&keep=1-2&t=1-2:a&keep=1-2:%&pin=lane:1",
  );

  assert.deepEqual(address, { ...NOWHERE, selected: { kind: "block", row: 7 } });
  assert.deepEqual(bad, [
    "t=5-2",
    "select=soul:1",
    "device=-1",
    "x",
    "event=1e3",
    "view=memory",
    "span=7-7",
    "keep=1-2",
    "t=1-2:a",
    "keep=1-2:%",
    "pin=lane:1",
  ]);
});

test("times between nanoseconds are rounded", () => {
  assert.equal(writeAddress({ ...NOWHERE, window: [0.4, 99.6] }), "#t=0-100");
});

test("no fragment is no address", () => {
  assert.deepEqual(readAddress(""), { address: NOWHERE, bad: [] });
  assert.deepEqual(readAddress("#"), { address: NOWHERE, bad: [] });
});
