import type { JupyterFrontEndPlugin } from "@jupyterlab/application";

import { kernels } from "./kernels.ts";
import { panel } from "./panel.ts";
import { recordings } from "./recordings.ts";

const plugins: JupyterFrontEndPlugin<unknown>[] = [recordings, kernels, panel];

export default plugins;
