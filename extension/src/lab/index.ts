import type { JupyterFrontEndPlugin } from "@jupyterlab/application";

import { recordings } from "./recordings.ts";

const plugins: JupyterFrontEndPlugin<void>[] = [recordings];

export default plugins;
