import assert from "node:assert/strict";
import { test } from "node:test";
import { deflateRawSync } from "node:zlib";

import { sourceOfBytes } from "./byte_source.ts";
import { readZipDirectory, readZipMember } from "./zip.ts";

interface Member {
  readonly name: string;
  readonly text: string;
  readonly method: number;
}

/** A minimal ZIP archive with a comment at its end. */
function archiveOf(members: readonly Member[]): Uint8Array<ArrayBuffer> {
  const locals: Buffer[] = [];
  const entries: Buffer[] = [];
  let offset = 0;
  for (const { name, text, method } of members) {
    const packed = method === 8 ? deflateRawSync(text) : Buffer.from(text);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(Buffer.byteLength(name), 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(method, 10);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt32LE(Buffer.byteLength(text), 24);
    entry.writeUInt16LE(Buffer.byteLength(name), 28);
    entry.writeUInt32LE(offset, 42);
    locals.push(local, Buffer.from(name), packed);
    entries.push(entry, Buffer.from(name));
    offset += 30 + Buffer.byteLength(name) + packed.length;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(members.length, 10);
  end.writeUInt32LE(offset, 16);
  end.writeUInt16LE(7, 20);
  const whole = Buffer.concat([...locals, ...entries, end, Buffer.from("comment")]);
  return new Uint8Array(whole);
}

async function textOf(archive: Uint8Array<ArrayBuffer>, name: string): Promise<string> {
  const source = sourceOfBytes(archive);
  const member = (await readZipDirectory(source)).get(name);
  assert.notEqual(member, undefined);
  return member === undefined ? "" : new TextDecoder().decode(await readZipMember(source, member));
}

test("deflated and stored members come back whole", async () => {
  const text = "segment ".repeat(1234);
  const archive = archiveOf([
    { name: "manifest.json", text, method: 8 },
    { name: "µ.arrow", text: "plain", method: 0 },
  ]);

  assert.equal(await textOf(archive, "manifest.json"), text);
  assert.equal(await textOf(archive, "µ.arrow"), "plain");
});

test("what is not an archive is refused in words", async () => {
  const source = sourceOfBytes(new Uint8Array(64));
  await assert.rejects(readZipDirectory(source), /the end of its ZIP archive is missing/);
});

test("a member packed in another way is refused by name", async () => {
  const archive = archiveOf([{ name: "a.arrow", text: "x", method: 12 }]);

  await assert.rejects(textOf(archive, "a.arrow"), /a\.arrow is packed with method 12/);
});
