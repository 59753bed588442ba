import type { JSONObject } from "@lumino/coreutils";

import type { LiveStatistics } from "../wire/batches.ts";

/** A process that uses a device. */
export interface ProcessUse {
  readonly pid: number;
  /** Bytes; null if the driver does not report them. */
  readonly used: number | null;
}

/** NVML's information on a device, for all processes; `More` is what a source adds on each. */
export interface DeviceTotals<More = unknown> {
  readonly uuid: string;
  readonly name: string;
  /** Bytes; 0 if unknown. */
  readonly total: number;
  readonly used: number;
  /** Whether the numbers are those of the host's memory, because the device has none of its own. */
  readonly sharesHostMemory?: boolean;
  readonly processes: readonly (ProcessUse & More)[];
}

/** The state that `gpuviz.notebook.panel` sends about once a second. */
export interface KernelState {
  readonly recording: boolean;
  /** The name of the kernel's machine. */
  readonly machine: string;
  readonly devices: LiveStatistics["devices"];
  /** `own` marks the processes of the kernel. */
  readonly totals: readonly DeviceTotals<{ readonly own: boolean }>[];
  readonly elapsedNs?: number;
  /** Name, value and detail of each number of the recorder, as the dashboard shows them. */
  readonly numbers?: readonly (readonly [name: string, value: string, detail: string])[];
}

/** The reply to a request. */
export interface Done {
  /** The id of the request. */
  readonly id: string;
  readonly text: string;
  readonly failed: boolean;
  /** To the requests `leaks` and `release`. */
  readonly held?: HeldMemory;
}

/** What keeps memory alive. */
export interface HeldMemory {
  /** Size, number of blocks, who keeps them alive, and a note; largest first. */
  readonly rows: readonly (readonly [string, string, string, string])[];
  /** The number of further rows. */
  readonly more: number;
  /** What can be let go: a key for the request, a title, and the bytes that it frees. */
  readonly releases: readonly (readonly [offer: string, title: string, bytes: string])[];
}

export type PanelRequest = "start" | "stop" | "snapshot" | "report" | "leaks" | "release";

/** The content of a comm message; undefined if it is not one of the panel's. */
export function readPanelMessage(
  data: JSONObject,
): { readonly state: KernelState } | { readonly done: Done } | undefined {
  if (data["gpuviz"] !== "panel") {
    return undefined;
  }
  if (data["kind"] === "state" && Array.isArray(data["devices"]) && Array.isArray(data["totals"])) {
    return { state: data as unknown as KernelState };
  }
  return data["kind"] === "done" ? { done: data as unknown as Done } : undefined;
}
