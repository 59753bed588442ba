import { ArrowTable } from "./arrow.ts";
import { recordBatches } from "./arrow_stream.ts";
import type { ByteSource } from "./byte_source.ts";
import { DERIVED_VERSION } from "./codes.ts";
import { readZipDirectory, readZipMember, readZipPieces, type ZipMember } from "./zip.ts";

/** The tables of a recording. */
export interface Tables {
  /** A table; empty if the recording lacks it, for example because it is of an older version. */
  table(name: string): ArrowTable | Promise<ArrowTable>;
  /** The parts of a table, without loading all of it into memory; none if it is missing. */
  parts(name: string): Iterable<ArrowTable> | AsyncIterable<ArrowTable>;
}

/** A recording in a file: its manifest, and its tables on demand. */
export class RecordingFile {
  /** The number of initial events at the start of `memory_events`. */
  readonly initialEvents: number;
  readonly durationNs: number;
  /** The window of a longer recording that this is; undefined if it is whole. */
  readonly bounds: { readonly fromNs: number; readonly toNs: number } | undefined;
  readonly manifest: Readonly<Record<string, unknown>>;
  readonly #tables: Tables;
  readonly #rows: Readonly<Record<string, unknown>>;

  constructor(manifest: Readonly<Record<string, unknown>>, tables: Tables) {
    this.manifest = manifest;
    this.#tables = tables;
    this.#rows = objectOf(manifest["tables"]) ?? {};
    this.initialEvents = numberOf(manifest["initial_events"]);
    this.durationNs = numberOf(manifest["duration_ns"]);
    const toNs = numberOf(manifest["window_end_ns"]);
    this.bounds = toNs > 0 ? { fromNs: numberOf(manifest["window_start_ns"]), toNs } : undefined;
  }

  /** The recording in a `.gpuviz` file. */
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
    return new RecordingFile(manifest, new ArchivedTables(source, members, manifest));
  }

  /** Whether the file has the derived tables of the current version. */
  get isClassified(): boolean {
    return isCurrent(this.manifest);
  }

  /** The number of rows of a table; 0 if the recording has no such table. */
  rowsOf(name: string): number {
    return numberOf(this.#rows[name]);
  }

  /** A table; empty if the recording lacks it, for example because it is of an older version. */
  async table(name: string): Promise<ArrowTable> {
    return this.#tables.table(name);
  }

  /** The parts of a table, without loading all of it into memory; none if it is missing. */
  async *parts(name: string): AsyncGenerator<ArrowTable> {
    yield* this.#tables.parts(name);
  }
}

/** The tables in a `.gpuviz` file. */
class ArchivedTables implements Tables {
  readonly #source: ByteSource;
  readonly #members: ReadonlyMap<string, ZipMember>;
  readonly #manifest: Readonly<Record<string, unknown>>;

  constructor(
    source: ByteSource,
    members: ReadonlyMap<string, ZipMember>,
    manifest: Readonly<Record<string, unknown>>,
  ) {
    this.#source = source;
    this.#members = members;
    this.#manifest = manifest;
  }

  async table(name: string): Promise<ArrowTable> {
    const member = this.#memberOf(name);
    return new ArrowTable(name, member && (await readZipMember(this.#source, member)));
  }

  async *parts(name: string): AsyncGenerator<ArrowTable> {
    const member = this.#memberOf(name);
    if (member !== undefined) {
      for await (const part of recordBatches(readZipPieces(this.#source, member))) {
        yield new ArrowTable(name, part);
      }
    }
  }

  #memberOf(name: string): ZipMember | undefined {
    const isDerived = isCurrent(this.#manifest);
    const derived = isDerived ? this.#members.get(`derived/${name}.arrow`) : undefined;
    const hasRows = objectOf(this.#manifest["tables"])?.[name] !== 0;
    return hasRows ? (this.#members.get(`${name}.arrow`) ?? derived) : undefined;
  }
}

/** Whether a file has the derived tables of the current version. */
function isCurrent(manifest: Readonly<Record<string, unknown>>): boolean {
  return manifest["derived_version"] === DERIVED_VERSION;
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === "object" && value !== null
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
