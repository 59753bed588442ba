import type { Session } from "./session.ts";

const SILENT_MS = 3000;

export interface LiveState {
  /** Where it is `absent`, what is shown of a saved notebook is better than this view. */
  readonly name: "waiting" | "absent" | "recording" | "silent" | "ended" | "cut";
  readonly text: string;
}

/** What a reader should know of how current the picture is. */
export function stateOf({ follower, isCut }: Pick<Session, "follower" | "isCut">): LiveState {
  const { number, isLive, hasAny, isWaiting, silentMs, durationNs } = follower;
  if (!isLive) {
    return { name: "ended", text: "Recording stopped" };
  }
  if (isCut) {
    const text = "The kernel is no longer running. The recording ends here.";
    return number < 0
      ? { name: "absent", text: "The kernel is no longer running." }
      : { name: "cut", text };
  }
  if (!hasAny) {
    return { name: "waiting", text: "Not recording" };
  }
  if (number < 0) {
    return silentMs > SILENT_MS
      ? { name: "absent", text: "Waiting for the kernel, which is busy or has stopped" }
      : { name: "waiting", text: "Waiting for the kernel" };
  }
  if (follower.comesLate) {
    return { name: "recording", text: "Recording; this notebook updates when a cell has ended" };
  }
  if (silentMs > SILENT_MS) {
    const seconds = Math.floor(silentMs / 1000);
    const text = `No updates for ${seconds} s: the kernel is in a long call, or has stopped`;
    return { name: "silent", text };
  }
  if (isWaiting) {
    return {
      name: "silent",
      text: "Data is missing; the kernel sends it as soon as possible",
    };
  }
  return durationNs === 0
    ? { name: "waiting", text: "Recording has not started" }
    : { name: "recording", text: "Recording" };
}
