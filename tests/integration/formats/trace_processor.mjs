// Perfetto's trace processor, as its user interface runs it: compiled to WebAssembly. It takes
// requests from stdin, each after its length in four bytes, and gives its replies to stdout.
//
// The bundle is made for a web worker, so a few globals stand in for one.
import { readFileSync, writeSync } from "node:fs";
import { basename, join } from "node:path";
import { runInThisContext } from "node:vm";

const folder = process.argv[2];
const read = (name) => readFileSync(join(folder, basename(String(name))));

process.type = "renderer";
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.importScripts = () => undefined;
globalThis.location = { href: "http://localhost/engine_bundle.js" };
globalThis.fetch = async (name) =>
  new Response(read(name), { headers: { "Content-Type": "application/wasm" } });
globalThis.XMLHttpRequest = class {
  open(_method, name) {
    this.name = name;
  }
  send() {
    this.response = Uint8Array.from(read(this.name)).buffer;
  }
};
console.log = console.warn;

runInThisContext(read("engine_bundle.js").toString());
// The module is ready when this returns; what waits for that runs in the next turn.
await new Promise((resolve) => setTimeout(resolve, 10));

const port = {
  postMessage(reply) {
    for (let sent = 0; sent < reply.length; ) sent += writeSync(1, reply, sent);
  },
};
globalThis.onmessage({ data: port });
const requests = readFileSync(0);
for (let at = 0; at < requests.length; ) {
  const end = at + 4 + requests.readUInt32LE(at);
  port.onmessage({ data: new Uint8Array(requests.subarray(at + 4, end)) });
  at = end;
}
process.exit(0);
