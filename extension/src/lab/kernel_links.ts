import type { Kernel, ServiceManager, Session } from "@jupyterlab/services";
import type { TranslationBundle } from "@jupyterlab/translation";
import { Signal, type ISignal } from "@lumino/signaling";

import { KernelLink } from "./kernel_link.ts";

/** A running kernel, what it belongs to, and the conversation with it. */
export interface LinkedKernel {
  readonly link: KernelLink;
  /** The notebook's or console's path. */
  readonly path: string;
  readonly name: string;
}

/** Conversations with all running kernels, or with one of them; none is begun before it is asked for. */
export class KernelLinks {
  readonly #manager: ServiceManager.IManager;
  readonly #words: TranslationBundle;
  readonly #links = new Map<string, KernelLink>();
  readonly #changed = new Signal<this, void>(this);
  #sessions: readonly Session.IModel[] = [];

  constructor(manager: ServiceManager.IManager, words: TranslationBundle) {
    this.#manager = manager;
    this.#words = words;
    manager.sessions.runningChanged.connect((_, sessions) => this.#update(sessions));
    this.#update([...manager.sessions.running()]);
  }

  /** Emitted when kernels came or went. */
  get changed(): ISignal<this, void> {
    return this.#changed;
  }

  /** All kernels that run, in the order of their paths. */
  all(): LinkedKernel[] {
    return this.#sessions.flatMap(({ kernel, path, name }) => {
      const link = this.of(kernel?.id);
      return link === undefined ? [] : [{ link, path, name }];
    });
  }

  /** A kernel, which may have started just now, and what it belongs to; undefined if it does not run. */
  async find(kernelId: string | undefined): Promise<LinkedKernel | undefined> {
    if (!this.#sessions.some(({ kernel }) => kernel?.id === kernelId)) {
      await this.#manager.sessions.refreshRunning();
    }
    return this.all().find(({ link }) => link.kernelId === kernelId);
  }

  /** The conversation with a kernel, begun if it was not yet; undefined if it does not run. */
  of(kernelId: string | undefined): KernelLink | undefined {
    const known = this.#links.get(kernelId ?? "");
    const model = this.#sessions.find(({ kernel }) => kernel?.id === kernelId)?.kernel;
    if (known !== undefined || !model) {
      return known;
    }
    const link = new KernelLink(this.#connect(model), this.#words);
    this.#links.set(model.id, link);
    return link;
  }

  #connect(model: Kernel.IModel): Kernel.IKernelConnection {
    // Comms of others stay with the notebook's own connection.
    return this.#manager.kernels.connectTo({ model, handleComms: false });
  }

  #update(sessions: readonly Session.IModel[]): void {
    this.#sessions = [...sessions].sort((left, right) => left.path.localeCompare(right.path));
    const running = new Set(sessions.map(({ kernel }) => kernel?.id));
    for (const [id, link] of this.#links) {
      if (!running.has(id)) {
        this.#links.delete(id);
        link.dispose();
      }
    }
    this.#changed.emit();
  }
}
