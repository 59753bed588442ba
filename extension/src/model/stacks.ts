import type { Table } from "../wire/table.ts";

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

/** The call stacks of a recording, by id; later rows add to them. */
export class Stacks {
  readonly #frames = new Map<number, Frame>();
  readonly #stacks = new Map<number, readonly number[]>();

  /** Takes rows of `frames` or `stacks`; other tables are passed over. */
  append(table: Table): void {
    if (table.name === "frames") {
      this.#appendFrames(table);
    } else if (table.name === "stacks") {
      const lists = table.lists("frames");
      table.numbers("id").forEach((id, row) => this.#stacks.set(id, lists[row] ?? []));
    }
  }

  #appendFrames(table: Table): void {
    const names = table.texts("name");
    const filenames = table.texts("filename");
    const lines = table.numbers("line");
    const sources = table.texts("source");
    table.numbers("id").forEach((id, row) => {
      this.#frames.set(id, {
        name: names[row] ?? "",
        filename: filenames[row] ?? "",
        line: lines[row] ?? 0,
        source: sources[row] ?? "",
      });
    });
  }

  /** The frames of a stack, innermost first; empty where none was captured. */
  framesOf(stack: number): readonly Frame[] {
    return (this.#stacks.get(stack) ?? []).map((id) => this.#frames.get(id) ?? UNKNOWN_FRAME);
  }

  /** Whether a frame's file belongs to Python or to an installed package. */
  isInstalled({ filename }: Frame): boolean {
    return INSTALLED.test(filename);
  }

  /** The innermost frame outside installed packages, else the innermost of all. */
  userFrameOf(stack: number): Frame | undefined {
    const frames = this.framesOf(stack);
    return frames.find((frame) => !this.isInstalled(frame)) ?? frames[0];
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
