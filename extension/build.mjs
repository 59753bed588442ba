// Bundles one script and one stylesheet for each host into gpuviz/static.
import { parseArgs } from "node:util";

import esbuild from "esbuild";

const { values } = parseArgs({ options: { watch: { type: "boolean" } } });

const hosts = {
  bundle: true,
  target: "es2022",
  logLevel: "warning",
  format: "esm",
  entryPoints: { report: "src/report/index.ts" },
  outdir: "../gpuviz/static",
  minify: !values.watch,
  sourcemap: values.watch ? "inline" : false,
};

if (values.watch) {
  await (await esbuild.context(hosts)).watch();
} else {
  await esbuild.build(hosts);
}
