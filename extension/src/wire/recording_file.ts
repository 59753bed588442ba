import { ArrowTable } from "./arrow.ts";
import { recordBatches } from "./arrow_stream.ts";
import type { ByteSource } from "./byte_source.ts";
import { DERIVED_VERSION } from "./codes.ts";
import { readZipDirectory, readZipMember, readZipPieces, type ZipMember } from "./zip.ts";

/** A `.gpuviz` file: its manifest, and its tables on demand. */
export class RecordingFile {
  /** The number of initial events at the start of `memory_events`. */
  readonly initialEvents: number;
  readonly durationNs: number;
  /** The window of a longer recording that this is; undefined if it is whole. */
  readonly bounds: { readonly fromNs: number; readonly toNs: number } | undefined;
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly #source: ByteSource;
  readonly #members: ReadonlyMap<string, ZipMember>;
  readonly #rows: Readonly<Record<string, unknown>>;

  private constructor(
    source: ByteSource,
    members: ReadonlyMap<string, ZipMember>,
    manifest: Readonly<Record<string, unknown>>,
  ) {
    this.#source = source;
    this.#members = members;
    this.manifest = manifest;
    this.#rows = objectOf(manifest["tables"]) ?? {};
    this.initialEvents = numberOf(manifest["initial_events"]);
    this.durationNs = numberOf(manifest["duration_ns"]);
    const toNs = numberOf(manifest["window_end_ns"]);
    this.bounds = toNs > 0 ? { fromNs: numberOf(manifest["window_start_ns"]), toNs } : undefined;
  }

  static async open(source: ByteSource): Promise<RecordingFile> {
    const members = await readZipDirectory(source);
    const member = members.get("manifest.json");
    if (member === undefined) {
      throw new Error("The recording has no member manifest.json.");
    }
    const bytes = await readZipMember(source, member);
    const manifest = objectOf(JSON.parse(new TextDecoder().decode(bytes)));
    if (manifest === undefined) {
      throw new Error("The member manifest.json holds no object.");
    }
    return new RecordingFile(source, members, manifest);
  }

  /** Whether the file has the derived tables of the current version. */
  get isClassified(): boolean {
    return this.manifest["derived_version"] === DERIVED_VERSION;
  }

  /** The number of rows of a table; 0 if the recording has no such table. */
  rowsOf(name: string): number {
    return numberOf(this.#rows[name]);
  }

  /** A table; empty if the recording lacks it, for example because it is of an older version. */
  async table(name: string): Promise<ArrowTable> {
    const member = this.#memberOf(name);
    return new ArrowTable(name, member && (await readZipMember(this.#source, member)));
  }

  #memberOf(name: string): ZipMember | undefined {
    const derived = this.isClassified ? this.#members.get(`derived/${name}.arrow`) : undefined;
    return this.#rows[name] === 0 ? undefined : (this.#members.get(`${name}.arrow`) ?? derived);
  }

  /** The parts of a table, without loading all of it into memory; none if it is missing. */
  async *parts(name: string): AsyncGenerator<ArrowTable> {
    const member = this.#memberOf(name);
    if (member !== undefined) {
      for await (const part of recordBatches(readZipPieces(this.#source, member))) {
        yield new ArrowTable(name, part);
      }
    }
  }
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
