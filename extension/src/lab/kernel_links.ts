import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import type { ServiceManager, Session } from "@jupyterlab/services";
import { ITranslator, nullTranslator, type TranslationBundle } from "@jupyterlab/translation";
import { Token } from "@lumino/coreutils";
import { Signal, type ISignal } from "@lumino/signaling";

import { KernelLink } from "./kernel_link.ts";

/** A running kernel, its notebook or console, and the link to it. */
export interface LinkedKernel {
  readonly link: KernelLink;
  /** The notebook's or console's path. */
  readonly path: string;
  readonly name: string;
}

/** The links to running kernels, each created on first use. */
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

  /** Emitted when kernels start or end. */
  get changed(): ISignal<this, void> {
    return this.#changed;
  }

  /** All running kernels, in the order of their paths. */
  all(): LinkedKernel[] {
    return this.#sessions.flatMap(({ kernel, path, name }) => {
      const link = this.of(kernel?.id);
      return link === undefined ? [] : [{ link, path, name }];
    });
  }

  /** A kernel, even if it has just started, with its notebook; undefined if it is not running. */
  async find(kernelId: string | undefined): Promise<LinkedKernel | undefined> {
    if (!this.#sessions.some(({ kernel }) => kernel?.id === kernelId)) {
      await this.#manager.sessions.refreshRunning();
    }
    return this.all().find(({ link }) => link.kernelId === kernelId);
  }

  /** The link to a kernel, created if necessary; undefined if it is not running. */
  of(kernelId: string | undefined): KernelLink | undefined {
    const known = this.#links.get(kernelId ?? "");
    const model = this.#sessions.find(({ kernel }) => kernel?.id === kernelId)?.kernel;
    if (known !== undefined || !model) {
      return known;
    }
    // Other comms are left to the notebook's own connection.
    const connection = this.#manager.kernels.connectTo({ model, handleComms: false });
    const link = new KernelLink(connection, this.#words);
    this.#links.set(model.id, link);
    return link;
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

/** The links to gpuviz in kernels, shared by all plugins. */
export const IKernelLinks = new Token<KernelLinks>("gpuviz:IKernelLinks");

export const kernels: JupyterFrontEndPlugin<KernelLinks> = {
  id: "gpuviz:kernels",
  description: "Connects to gpuviz in running kernels.",
  autoStart: true,
  provides: IKernelLinks,
  optional: [ITranslator],
  activate: (app: JupyterFrontEnd, translator: ITranslator | null): KernelLinks => {
    const words = (translator ?? nullTranslator).load("gpuviz");
    return new KernelLinks(app.serviceManager, words);
  },
};
