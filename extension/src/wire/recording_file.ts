import { ArrowTable } from "./arrow.ts";
import { readZipDirectory, readZipMember, type ZipMember } from "./zip.ts";

/** A `.gpuviz` file: its manifest and the tables that a view asks for. */
export class RecordingFile {
  readonly initialEvents: number;
  readonly durationNs: number;
  readonly #archive: Uint8Array<ArrayBuffer>;
  readonly #members: ReadonlyMap<string, ZipMember>;

  private constructor(
    archive: Uint8Array<ArrayBuffer>,
    members: ReadonlyMap<string, ZipMember>,
    manifest: Readonly<Record<string, unknown>>,
  ) {
    this.#archive = archive;
    this.#members = members;
    this.initialEvents = numberOf(manifest, "initial_events");
    this.durationNs = numberOf(manifest, "duration_ns");
  }

  static async open(archive: Uint8Array<ArrayBuffer>): Promise<RecordingFile> {
    const members = readZipDirectory(archive);
    const bytes = await memberBytes(archive, members, "manifest.json");
    const manifest: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof manifest !== "object" || manifest === null) {
      throw new Error("The member manifest.json holds no object.");
    }
    return new RecordingFile(archive, members, manifest as Record<string, unknown>);
  }

  async table(name: string): Promise<ArrowTable> {
    const bytes = await memberBytes(this.#archive, this.#members, `${name}.arrow`);
    return new ArrowTable(name, bytes);
  }

  /** A table, empty where the recording has none, as one of an older version may not. */
  async tableIfAny(name: string): Promise<ArrowTable> {
    return this.#members.has(`${name}.arrow`) ? this.table(name) : new ArrowTable(name);
  }
}

async function memberBytes(
  archive: Uint8Array<ArrayBuffer>,
  members: ReadonlyMap<string, ZipMember>,
  name: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const member = members.get(name);
  if (member === undefined) {
    throw new Error(`The recording has no member ${name}.`);
  }
  return readZipMember(archive, name, member);
}

function numberOf(manifest: Readonly<Record<string, unknown>>, key: string): number {
  const value = manifest[key];
  return typeof value === "number" ? value : 0;
}
