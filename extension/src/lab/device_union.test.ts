import assert from "node:assert/strict";
import { test } from "node:test";

import { type Source, unionOf } from "./device_union.ts";

function source(
  machine: string,
  devices: Record<string, number>,
  owners: [number, string][] = [],
): Source {
  const all = Object.entries(devices).map(([uuid, used]) => {
    return { uuid, name: "GPU", total: 1234, used, processes: [] };
  });
  return { machine, devices: all, owners: new Map(owners) };
}

function shown(sources: Source[], server?: Source): [string, number, string][] {
  return unionOf(sources, server).map(({ device, machine }) => {
    return [device.uuid, device.used, machine];
  });
}

test("without the server, kernels of one machine tell of its devices once", () => {
  const found = shown([source("here", { a: 1, b: 2 }), source("here", { a: 7, b: 8 })]);

  assert.deepEqual(found, [
    ["a", 1, "here"],
    ["b", 2, "here"],
  ]);
});

test("who comes first is believed, and the order stays that of the server", () => {
  const server = source("here", { a: 1, b: 2 });
  const found = shown([source("here", { b: 20 }), server], server);

  assert.deepEqual(found, [
    ["a", 1, "here"],
    ["b", 20, "here"],
  ]);
});

test("devices of the server's and of a kernel's machine stand side by side", () => {
  const server = source("here", { a: 1 });
  const found = shown([source("there", { c: 3 }), server], server);

  assert.deepEqual(found, [
    ["a", 1, "here"],
    ["c", 3, "there"],
  ]);
});

test("a container that tells of the server's device is on the server's machine", () => {
  const server = source("here", { a: 1 });
  const found = shown([source("container", { a: 5 }), server], server);

  assert.deepEqual(found, [["a", 5, "here"]]);
});

test("processes are named by all who tell on one machine, and by nobody elsewhere", () => {
  const server = source("here", { a: 1 }, [[41, "of the server.ipynb"]]);
  const kernels = [
    source("here", { a: 1 }, [[42, "one.ipynb"]]),
    source("container", { a: 1 }, [[43, "of the container.ipynb"]]),
  ];
  const [device] = unionOf([...kernels, server], server);

  assert.deepEqual(
    [...(device?.owners ?? [])],
    [
      [42, "one.ipynb"],
      [41, "of the server.ipynb"],
    ],
  );
});

test("where nobody tells of a device there is none", () => {
  assert.deepEqual(shown([], source("here", {})), []);
});
