import type { SpanStack } from "./span_stack.ts";

/** A stream's or a host thread's spans. */
export interface Lane {
  readonly title: string;
  /** The id of its stream, undefined for a thread. */
  readonly stream: number | undefined;
  readonly stack: Pick<SpanStack, "rows" | "count">;
  /** The thread's id, undefined for a stream. */
  readonly thread?: number;
  /** Whether it has only samples of the host's code: nothing for a GPU, and no range. */
  readonly isQuiet?: boolean;
  /** The device of a stream. */
  readonly device?: number | undefined;
  /** What the process and the device are called, where there are several. */
  readonly group?: string;
}
