import type { JSONObject } from "@lumino/coreutils";

/** One device of a recorder: bytes, and the busy share since the state before. */
export interface DeviceVitals {
  readonly device: number;
  readonly allocated: number;
  readonly peak: number;
  readonly reserved: number;
  readonly busy: number | null;
}

/** A process that uses a device. */
export interface ProcessUse {
  readonly pid: number;
  /** Bytes; null where the driver does not tell. */
  readonly used: number | null;
}

/** What NVML tells of a device, whoever uses it. */
export interface DeviceTotals {
  readonly uuid: string;
  readonly name: string;
  readonly total: number;
  readonly used: number;
  readonly processes: readonly ProcessUse[];
}

/** The same, as a kernel tells it. */
export interface KernelTotals extends DeviceTotals {
  readonly processes: readonly (ProcessUse & { readonly own: boolean })[];
}

/** What `gpuviz.notebook.panel` tells once a second. */
export interface KernelState {
  readonly recording: boolean;
  /** The name of the kernel's machine. */
  readonly machine: string;
  readonly devices: readonly DeviceVitals[];
  readonly totals: readonly KernelTotals[];
  readonly elapsedNs?: number;
  readonly events?: number;
  readonly activities?: number;
  readonly dropped?: number;
  readonly streams?: boolean;
  readonly notes?: readonly string[];
}

/** The answer to a request. */
export interface Done {
  /** The request's. */
  readonly id: string;
  readonly text: string;
  readonly failed: boolean;
}

export type PanelRequest = "start" | "stop" | "clear" | "snapshot" | "report";

/** What the data of a comm message say, if it is one of the panel's. */
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
