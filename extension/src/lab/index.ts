import type { JupyterFrontEndPlugin } from "@jupyterlab/application";

import { commands } from "./commands.ts";
import { kernels } from "./kernel_links.ts";
import { panel } from "./panel.ts";
import { recordings } from "./recordings.ts";
import { settings } from "./settings.ts";
import { status } from "./status.ts";

const plugins: JupyterFrontEndPlugin<unknown>[] = [
  recordings,
  kernels,
  settings,
  panel,
  commands,
  status,
];

export default plugins;
