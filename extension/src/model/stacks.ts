import type { ArrowTable } from "../wire/arrow.ts";
import { BACKWARD_OF, NO_STACK } from "../wire/codes.ts";
import type { CategoryName } from "./categories.ts";

export interface Frame {
  readonly name: string;
  readonly filename: string;
  readonly line: number;
  readonly source: string;
  /** What its line assigns to, as `labels, found`; empty where that is unknown. */
  readonly assigned: string;
  /** The text of the lines around it from `contextLine` on; empty where it is unknown. */
  readonly context: string;
  readonly contextLine: number;
  /** Whether its code is not that of the program's own files. */
  readonly isInstalled: boolean;
}

/** A line of the program. */
export interface CallSite {
  /** `function (file:line)` of the user's innermost line. */
  readonly site: string;
  /** The line's text, empty where unknown. */
  readonly source: string;
}

interface Stack {
  readonly frames: readonly number[];
  readonly userFrame: number;
  readonly module: string;
  readonly phase: string;
  /** The user's frame in the forward work that a backward pass undoes; 0 for other work. */
  readonly forwardFrame: number;
}

/** The line that a table names for a stack. */
interface Line {
  readonly frame: Frame;
  /** `BACKWARD_OF` before the line of forward work, empty before a line that runs itself. */
  readonly before: string;
}

const UNKNOWN_FRAME: Frame = {
  name: "",
  filename: "",
  line: 0,
  source: "",
  assigned: "",
  context: "",
  contextLine: 0,
  isInstalled: false,
};

const UNKNOWN_CALL: CategoryName = { short: "no call stack", long: "no call stack" };

/** The call stacks of a recording, by id; later rows add to them. */
export class Stacks {
  readonly #frames = new Map<number, Frame>();
  readonly #stacks = new Map<number, Stack>();
  #hasPhases = false;

  /** Takes rows of `frames` or `stacks`; other tables are passed over. */
  append(table: ArrowTable): void {
    if (table.name === "frames") {
      this.#appendFrames(table);
    } else if (table.name === "stacks") {
      const lists = table.lists("frames");
      const [modules, phases] = [textsIn(table, "module"), textsIn(table, "phase")];
      const userFrames = numbersIn(table, "user_frame");
      const forwardFrames = numbersIn(table, "forward_frame");
      table.numbers("id").forEach((id, row) => {
        const frames = lists[row] ?? [];
        this.#hasPhases ||= (phases[row] ?? "") !== "";
        this.#stacks.set(id, {
          frames,
          userFrame: userFrames[row] ?? frames[0] ?? 0,
          module: modules[row] ?? "",
          phase: phases[row] ?? "",
          forwardFrame: forwardFrames[row] ?? 0,
        });
      });
    }
  }

  #appendFrames(table: ArrowTable): void {
    const names = table.texts("name");
    const filenames = table.texts("filename");
    const lines = table.numbers("line");
    const sources = table.texts("source");
    const [assigned, contexts] = [textsIn(table, "assigned"), textsIn(table, "context")];
    const contextLines = numbersIn(table, "context_line");
    const installed = numbersIn(table, "installed");
    table.numbers("id").forEach((id, row) => {
      this.#frames.set(id, {
        name: names[row] ?? "",
        filename: filenames[row] ?? "",
        line: Math.max(lines[row] ?? 0, 0),
        source: sources[row] ?? "",
        assigned: assigned[row] ?? "",
        context: contexts[row] ?? "",
        contextLine: contextLines[row] ?? 0,
        isInstalled: (installed[row] ?? 0) !== 0,
      });
    });
  }

  /** The text of the lines of a file that the recording has, by line number, ascending. */
  sourceOf(filename: string): ReadonlyMap<number, string> {
    const lines = new Map<number, string>();
    for (const { filename: file, line, source, context, contextLine } of this.#frames.values()) {
      if (file === filename && source !== "") {
        const around = context === "" ? [source] : context.split("\n");
        const first = context === "" ? line : contextLine;
        around.forEach((text, row) => lines.set(first + row, text));
      }
    }
    return new Map([...lines].sort(([left], [right]) => left - right));
  }

  /** The frames of a stack, innermost first; empty where none was captured. */
  framesOf(stack: number): readonly Frame[] {
    return (this.#stacks.get(stack)?.frames ?? []).map(
      (id) => this.#frames.get(id) ?? UNKNOWN_FRAME,
    );
  }

  /** The innermost frame of the program's own files, else of code made while it ran, else of all. */
  userFrameOf(stack: number): Frame | undefined {
    const id = this.#stacks.get(stack)?.userFrame ?? 0;
    return id === 0 ? undefined : (this.#frames.get(id) ?? UNKNOWN_FRAME);
  }

  /** Whether something belongs to a module, or to a part of a training step. */
  get hasPhases(): boolean {
    return this.#hasPhases;
  }

  /** The path of the module that a stack is in. */
  moduleOf(stack: number): string {
    return this.#stacks.get(stack)?.module || "no module, or unknown";
  }

  /** The parts of that path as frames without a file, outermost first. */
  modulePathOf(stack: number): Frame[] {
    return this.moduleOf(stack)
      .split(".")
      .map((name) => ({ ...UNKNOWN_FRAME, name }));
  }

  /** The part of a training step that a stack is in. */
  phaseOf(stack: number): string {
    return this.#stacks.get(stack)?.phase || "other";
  }

  /** The line whose backward pass it is, its module and its part of a training step. */
  placeLinesOf(stack: number): string[] {
    const { module = "", phase = "", forwardFrame = 0 } = this.#stacks.get(stack) ?? {};
    const forward = this.#frames.get(forwardFrame);
    const undone = forward === undefined ? [] : describeLine(BACKWARD_OF.trimEnd(), forward);
    const place = [module, phase].filter((word) => word !== "").join(", ");
    return [...undone, ...(place === "" ? [] : [`module: ${place}`])];
  }

  #lineOf(stack: number): Line | undefined {
    const forward = this.#frames.get(this.#stacks.get(stack)?.forwardFrame ?? 0);
    if (forward !== undefined) {
      return { frame: forward, before: BACKWARD_OF };
    }
    const frame = this.userFrameOf(stack);
    return frame && { frame, before: "" };
  }

  /** The frame of the line that tables name for a stack: of a backward pass, the forward one. */
  lineFrameOf(stack: number): Frame | undefined {
    return this.#lineOf(stack)?.frame;
  }

  /** What is said before the file of that line. */
  beforeLineOf(stack: number): string {
    return this.#lineOf(stack)?.before ?? "";
  }

  /** The user's line that allocated or freed, as `train.py:12 forward`. */
  siteOf(stack: number): string {
    const line = this.#lineOf(stack);
    return line === undefined ? UNKNOWN_CALL.short : `${line.before}${describeFrame(line.frame)}`;
  }

  /** The function of that line, as `forward` and as `forward (train.py)`. */
  functionOf(stack: number): CategoryName {
    const { name, filename } = this.userFrameOf(stack) ?? {
      name: UNKNOWN_CALL.short,
      filename: "",
    };
    return { short: name, long: filename === "" ? name : `${name} (${shortFilename(filename)})` };
  }

  /** The innermost call, also of a library, as `forward (conv.py:548)`. */
  innermostOf(stack: number): CategoryName {
    const [frame] = this.framesOf(stack);
    if (frame === undefined) {
      return UNKNOWN_CALL;
    }
    const { name, filename, line } = frame;
    const [short, long] = [1, 2].map((parts) =>
      siteText({ name, filename: shortFilename(filename, parts), line }),
    );
    return { short: short ?? name, long: long ?? name };
  }

  /** The same line by what it assigns to, as `train.py:12 loss`, and by its text. */
  lineNameOf(stack: number): CategoryName {
    const line = this.#lineOf(stack);
    if (line === undefined) {
      return UNKNOWN_CALL;
    }
    const { frame, before } = line;
    const file =
      frame.filename === "" ? "" : `${frame.filename.replace(/^.*[/]/, "")}:${frame.line} `;
    const place = `${before}${file}`;
    return {
      short: `${place}${frame.assigned || frame.name}`,
      long: `${place}${frame.source.trim() || frame.name}`,
    };
  }

  /** The same line as tables of a recording name it. */
  callSiteOf(stack: number): CallSite {
    const line = this.#lineOf(stack);
    return line === undefined
      ? { site: NO_STACK, source: "" }
      : { site: `${line.before}${siteText(line.frame)}`, source: line.frame.source };
  }
}

/** A column that older files lack; empty where it is missing. */
function textsIn(table: ArrowTable, column: string): readonly string[] {
  return table.has(column) ? table.texts(column) : [];
}

/** A column that older files lack; empty where it is missing. */
function numbersIn(table: ArrowTable, column: string): ArrayLike<number> {
  return table.has(column) ? table.numbers(column) : [];
}

export function describeFrame(frame: Pick<Frame, "name" | "filename" | "line">): string {
  return frame.filename === ""
    ? frame.name
    : `${shortFilename(frame.filename)}:${frame.line} ${frame.name}`.trimEnd();
}

/** What was done in a frame, with the text of its line if that is known. */
export function describeLine(what: string, frame: Frame): string[] {
  const source = frame.source.trim();
  return [`${what}: ${describeFrame(frame)}`, ...(source === "" ? [] : [`    ${source}`])];
}

/** A frame as `function (file:line)`. */
export function siteText(frame: Pick<Frame, "name" | "filename" | "line">): string {
  return frame.filename === "" ? frame.name : `${frame.name} (${frame.filename}:${frame.line})`;
}

/** The last parts of a path. */
export function shortFilename(filename: string, parts = 2): string {
  return filename.split("/").slice(-parts).join("/");
}
