import type { RecordingFile } from "../wire/recording_file.ts";

export interface Frame {
  readonly name: string;
  readonly filename: string;
  readonly line: number;
  readonly source: string;
}

const UNKNOWN_FRAME: Frame = { name: "", filename: "", line: 0, source: "" };

// The same rule as in gpuviz/analysis/callstacks.py.
const INSTALLED =
  /^(?!.*[/\\]gpuviz[/\\]commands[/\\]workloads[/\\])(.*[/\\](site-packages|dist-packages)[/\\]|.*[/\\]lib(64)?[/\\]python\d+\.\d+[/\\]|<frozen)/;

/** The call stacks of a recording, by id. */
export class Stacks {
  readonly #frames: ReadonlyMap<number, Frame>;
  readonly #stacks: ReadonlyMap<number, readonly number[]>;

  constructor(frames: ReadonlyMap<number, Frame>, stacks: ReadonlyMap<number, readonly number[]>) {
    this.#frames = frames;
    this.#stacks = stacks;
  }

  /** The frames of a stack, innermost first; empty where none was captured. */
  framesOf(stack: number): readonly Frame[] {
    return (this.#stacks.get(stack) ?? []).map((id) => this.#frames.get(id) ?? UNKNOWN_FRAME);
  }

  /** The innermost frame outside installed packages, else the innermost of all. */
  userFrameOf(stack: number): Frame | undefined {
    const frames = this.framesOf(stack);
    return frames.find((frame) => !INSTALLED.test(frame.filename)) ?? frames[0];
  }

  /** The user's line that allocated or freed, as `train.py:12 forward`. */
  siteOf(stack: number): string {
    const frame = this.userFrameOf(stack);
    return frame === undefined ? "no call stack" : describeFrame(frame);
  }
}

export function describeFrame(frame: Frame): string {
  return `${shortFilename(frame.filename)}:${frame.line} ${frame.name}`.trimEnd();
}

/** The last two parts of a path. */
export function shortFilename(filename: string): string {
  return filename.split("/").slice(-2).join("/");
}

export async function readStacks(file: RecordingFile): Promise<Stacks> {
  const [frameTable, stackTable] = await Promise.all([file.table("frames"), file.table("stacks")]);
  const names = frameTable.texts("name");
  const filenames = frameTable.texts("filename");
  const lines = frameTable.numbers("line");
  const sources = frameTable.texts("source");
  const frames = new Map<number, Frame>();
  frameTable.numbers("id").forEach((id, row) => {
    frames.set(id, {
      name: names[row] ?? "",
      filename: filenames[row] ?? "",
      line: lines[row] ?? 0,
      source: sources[row] ?? "",
    });
  });
  const lists = stackTable.lists("frames");
  const stacks = new Map<number, readonly number[]>();
  stackTable.numbers("id").forEach((id, row) => stacks.set(id, lists[row] ?? []));
  return new Stacks(frames, stacks);
}
