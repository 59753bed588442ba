import assert from "node:assert/strict";
import { test } from "node:test";

import { Follower } from "./follower.ts";
import { stateOf } from "./live_state.ts";

test("a view that has got nothing leaves its place to what is saved, but not at once", () => {
  let now = 0;
  const follower = new Follower(
    () => undefined,
    () => now,
  );
  follower.catchUp();
  const name = (isCut: boolean): string => stateOf({ follower, isCut }).name;

  assert.equal(name(false), "waiting");
  now = 2900;
  assert.equal(name(false), "waiting");
  assert.equal(name(true), "absent");
  now = 3100;
  assert.equal(name(false), "absent");
});

test("a view that has got something never does", () => {
  let now = 0;
  const follower = new Follower(
    () => undefined,
    () => now,
  );
  follower.catchUp();
  follower.receive(
    {
      number: 0,
      part: 0,
      parts: 1,
      recording: true,
      live: true,
      durationNs: 1,
      initialEvents: 0,
      tables: [],
    },
    [],
  );
  now = 60_000;

  assert.equal(stateOf({ follower, isCut: false }).name, "silent");
  assert.equal(stateOf({ follower, isCut: true }).name, "cut");
});
