import assert from "node:assert/strict";
import { test } from "node:test";

import { AddressMap, type AddressRange } from "./address_map.ts";
import { seeded } from "../../testing/seeded.ts";

test("ranges are found as a plain list finds them", () => {
  const random = seeded(11);
  const map = new AddressMap<AddressRange>();
  let plain: AddressRange[] = [];
  for (let step = 0; step < 6000; step += 1) {
    // Grows past several parts, then shrinks to nothing.
    const isGrowing = random() < (step < 3000 ? 0.8 : 0.1);
    const address = Math.floor(random() * 4000);
    const known = plain[Math.floor(random() * plain.length)];
    if (isGrowing || known === undefined) {
      const range = { address, size: 1 + Math.floor(random() * 3) };
      map.set(range);
      plain = [...plain.filter((each) => each.address !== address), range];
      plain.sort((left, right) => left.address - right.address);
    } else {
      map.delete(known);
      plain = plain.filter((each) => each !== known);
    }
    const upTo = plain.findLast((each) => each.address <= address + 1);
    const after = plain.find((each) => each.address > address + 1);
    const reaches = upTo !== undefined && upTo.address + upTo.size > address + 1;

    assert.equal(map.upTo(address + 1), upTo);
    assert.equal(map.after(address + 1), after);
    assert.equal(map.overlapping(address + 1), reaches ? upTo : after);
    assert.equal(
      map.at(address),
      plain.find((each) => each.address === address),
    );
    if (step % 500 === 0) {
      assert.deepEqual([...map], plain);
    }
  }
});
