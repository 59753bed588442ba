import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ITranslator, nullTranslator } from "@jupyterlab/translation";
import { Token } from "@lumino/coreutils";

import { KernelLinks } from "./kernel_links.ts";

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
