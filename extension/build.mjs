// Bundles one script and one stylesheet for each host into gpuviz/static.
import { readFile, stat } from "node:fs/promises";
import { parseArgs } from "node:util";

import esbuild from "esbuild";

const { values } = parseArgs({ options: { watch: { type: "boolean" } } });

const LARGEST_WIDGET_BYTES = 150_000;

/** A page of ours has one palette; in a notebook it belongs to our elements, and classes choose. */
const DARK = ".gpuviz-theme--dark";
const CONTRAST = ".gpuviz-theme--contrast";
const PALETTES_OF_PAGE = /@media ([^{]+)\{\s*:root:not\(\.gpuviz-light\)/g;
const paletteOfWidget = {
  name: "palette of the widget",
  setup(build) {
    build.onLoad({ filter: /theme\.css$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8"))
        .replace(":root {", ".gpuviz-theme {")
        .replace(PALETTES_OF_PAGE, (_, media) => {
          const dark = media.includes("dark") ? DARK : "";
          const contrast = media.includes("contrast") ? CONTRAST : "";
          return `@media all { .gpuviz-theme${dark}${contrast}`;
        }),
      loader: "css",
    }));
  },
};

const options = {
  bundle: true,
  target: "es2022",
  logLevel: "warning",
  format: "esm",
  outdir: "../gpuviz/static",
  minify: !values.watch,
  // Names that end so are ours alone, but for what messages of the kernel have.
  mangleProps: /(Ns|Px|Bytes|Kind|Completed|Requested|Correlation|Calls|Operations|Work|Stream)$/,
  reserveProps: /^durationNs$/,
  sourcemap: values.watch ? "inline" : false,
};

const hosts = [
  { ...options, entryPoints: { report: "src/report/index.ts" } },
  {
    ...options,
    entryPoints: { widget: "src/widget/index.ts" },
    plugins: [paletteOfWidget],
  },
];

if (values.watch) {
  await Promise.all(hosts.map(async (host) => (await esbuild.context(host)).watch()));
} else {
  await Promise.all(hosts.map((host) => esbuild.build(host)));
  const { size } = await stat("../gpuviz/static/widget.js");
  console.log(`widget.js: ${size} bytes`);
  if (size > LARGEST_WIDGET_BYTES) {
    throw new Error(`widget.js has ${size} bytes; at most ${LARGEST_WIDGET_BYTES} are allowed`);
  }
}
