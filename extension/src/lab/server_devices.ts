import { PageConfig, URLExt } from "@jupyterlab/coreutils";
import { ServerConnection } from "@jupyterlab/services";

import { DEVICES_OPTION } from "../wire/codes.ts";
import type { DeviceTotals } from "./panel_messages.ts";

/** URL of the server's devices, if it has gpuviz; set by `gpuviz/server/__init__.py`. */
const PATH = PageConfig.getOption(DEVICES_OPTION);
const ASK_AGAIN_MS = 5000;
/** The longest interval after failures, which increase it. */
const SLOWEST_MS = 60_000;
const LATE_MS = 10_000;

/** NVML's information on the Jupyter server's machine, from `gpuviz/server/devices.py`. */
export interface ServerReading {
  readonly machine: string;
  /** `kernel` is the id of the kernel that a process belongs to. */
  readonly devices: readonly DeviceTotals<{ readonly kernel: string | null }>[];
}

/** The devices of the Jupyter server's machine, polled while they are visible. */
export class ServerDevices {
  readonly #server: ServerConnection.ISettings;
  readonly #changed: () => void;
  #reading: ServerReading | undefined;
  #looking: AbortController | undefined;

  constructor(server: ServerConnection.ISettings, changed: () => void) {
    this.#server = server;
    this.#changed = changed;
  }

  /** The latest answer; undefined if the server has no gpuviz or does not answer. */
  get reading(): ServerReading | undefined {
    return this.#reading;
  }

  look(isSeen: boolean): void {
    if (PATH === "" || isSeen === (this.#looking !== undefined)) {
      return;
    }
    this.#looking?.abort();
    this.#looking = isSeen ? new AbortController() : undefined;
    if (this.#looking !== undefined) {
      void this.#follow(this.#looking.signal);
    }
  }

  async #follow(end: AbortSignal): Promise<void> {
    let pauseMs = ASK_AGAIN_MS;
    while (!end.aborted) {
      const reading = await this.#read(end);
      if (end.aborted) {
        return;
      }
      this.#reading = reading;
      this.#changed();
      pauseMs = reading === undefined ? Math.min(2 * pauseMs, SLOWEST_MS) : ASK_AGAIN_MS;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  }

  async #read(end: AbortSignal): Promise<ServerReading | undefined> {
    try {
      const signal = AbortSignal.any([end, AbortSignal.timeout(LATE_MS)]);
      const url = URLExt.join(this.#server.baseUrl, PATH);
      const response = await ServerConnection.makeRequest(url, { signal }, this.#server);
      return response.ok ? ((await response.json()) as ServerReading) : undefined;
    } catch {
      return undefined;
    }
  }
}
