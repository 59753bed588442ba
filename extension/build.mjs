// Bundles one script and one stylesheet for each page into gpuviz/static, and the JupyterLab
// extension into gpuviz/labextension. Pages and servers that run meanwhile never read half of them.
import { execFileSync } from "node:child_process";
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import { parseArgs } from "node:util";

import esbuild from "esbuild";
import { minify } from "terser";

import { completeLicences, packagesIn, prependNotices, writeComponents } from "./notices.mjs";
import { ownNames } from "./own_names.ts";

const { values } = parseArgs({
  options: { version: { type: "string", default: "0.0.0" }, watch: { type: "boolean" } },
});

/** Where bundles are made, before they are published. */
const STATIC = "lib/built/static";
const LABEXTENSION = "lib/built/labextension";
/** What cmake/snapshot_reader.py makes of gpuviz/native/viewer. */
const NATIVE = "lib/native";

const LARGEST_WIDGET_BYTES = 194_000;

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

/** JupyterLab supplies its packages at run time; style sheets are loaded by its bundler. */
const suppliedByJupyterLab = {
  name: "supplied by JupyterLab",
  setup(build) {
    build.onResolve({ filter: /^@(jupyterlab|lumino)\// }, () => ({ external: true }));
    build.onResolve({ filter: /^\.\/(style|status)\.css$/ }, ({ path }) => ({
      path,
      external: true,
    }));
  },
};

const options = {
  bundle: true,
  target: "es2022",
  logLevel: "warning",
  format: "esm",
  outdir: values.watch ? "../gpuviz/static" : STATIC,
  metafile: true,
  minify: !values.watch,
  sourcemap: values.watch ? "inline" : false,
};

/** Scripts become 5 % smaller where names that only our code uses are short. */
const ofPages = {
  ...options,
  ...(!values.watch && { mangleProps: new RegExp(`^(?:${ownNames().join("|")})$`) }),
};

const pages = [
  {
    ...ofPages,
    entryPoints: { report: "src/report/index.ts", compared: "src/report/compared.ts" },
  },
  {
    ...ofPages,
    entryPoints: { widget: "src/widget/index.ts" },
    plugins: [paletteOfWidget],
  },
];

const lab = [
  {
    ...options,
    entryPoints: { index: "src/lab/index.ts" },
    outdir: "lib/lab",
    splitting: true,
    minify: false,
    plugins: [suppliedByJupyterLab],
  },
  {
    ...options,
    entryPoints: { style: "src/lab/style.css", status: "src/lab/status.css" },
    outdir: "lib/lab",
    plugins: [paletteOfWidget],
  },
];

/** Makes a script smaller than esbuild does, by about 3 %. */
async function pressScript(path) {
  const script = await readFile(path, "utf8");
  const { code = script } = await minify(script, {
    module: true,
    ecma: 2020,
    // Neither our code nor the Arrow reader calls a function expression with new.
    compress: { passes: 6, pure_getters: true, unsafe_arrows: true },
  });
  await writeFile(path, code);
  return code.length;
}

/** Adds the viewer's reader of snapshots, if it was compiled, and returns the libraries in it. */
async function addSnapshotReader() {
  const listed = await readFile(`${NATIVE}/snapshot_reader.json`, "utf8").catch(() => undefined);
  if (listed === undefined) {
    return [];
  }
  await cp(`${NATIVE}/snapshot_reader.wasm`, `${STATIC}/snapshot_reader.wasm`);
  return JSON.parse(listed);
}

/** Packs lib/lab as JupyterLab's own builder does, for all versions that the manifest admits. */
async function buildLabExtension(version) {
  const folder = "lib/labextension";
  await cp("labextension", folder, { recursive: true });
  const manifest = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
  // Otherwise the builder requires the versions that it was released with.
  const shared = Object.entries(manifest.dependencies).map(([name, requiredVersion]) => {
    return [name, { bundled: false, singleton: true, requiredVersion }];
  });
  manifest.jupyterlab.outputDir = `../../${LABEXTENSION}`;
  manifest.jupyterlab.sharedPackages = Object.fromEntries(shared);
  await writeFile(`${folder}/package.json`, JSON.stringify({ ...manifest, version }, null, 2));
  const require = createRequire(import.meta.url);
  const builder = require.resolve("@jupyter/builder/lib/build-labextension.js");
  const core = require.resolve("@jupyterlab/core-meta/core.package.json");
  // If it fails, the error contains its output.
  execFileSync(process.execPath, [builder, "--core-package-file", core, folder], {
    stdio: "pipe",
  });
  await cp("labextension/install.json", `${LABEXTENSION}/install.json`);
}

async function filesIn(folder) {
  await mkdir(folder, { recursive: true });
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return files.map((file) => `${file.parentPath}/${file.name}`.slice(folder.length + 1));
}

/** Replaces each file that differs at once, and removes those that are no longer built. */
async function publish(from, to) {
  const built = await filesIn(from);
  for (const file of built) {
    const content = await readFile(`${from}/${file}`);
    const known = await readFile(`${to}/${file}`).catch(() => undefined);
    if (known === undefined || !content.equals(known)) {
      await mkdir(dirname(`${to}/${file}`), { recursive: true });
      await writeFile(`${to}/${file}.new`, content);
      await rename(`${to}/${file}.new`, `${to}/${file}`);
    }
  }
  const outdated = (await filesIn(to)).filter((file) => !built.includes(file));
  await Promise.all(outdated.map((file) => rm(`${to}/${file}`)));
}

if (values.watch) {
  await Promise.all(pages.map(async (page) => (await esbuild.context(page)).watch()));
} else {
  await rm("lib/built", { recursive: true, force: true });
  const built = await Promise.all([...pages, ...lab].map((bundle) => esbuild.build(bundle)));
  const contents = built.flatMap(({ metafile }) => packagesIn(metafile));
  await buildLabExtension(values.version);
  await pressScript(`${STATIC}/report.js`);
  await pressScript(`${STATIC}/compared.js`);
  const size = await pressScript(`${STATIC}/widget.js`);
  console.log(`widget.js: ${size} bytes`);
  if (size > LARGEST_WIDGET_BYTES) {
    throw new Error(`widget.js has ${size} bytes; at most ${LARGEST_WIDGET_BYTES} are allowed`);
  }
  for (const [file, names] of contents.filter(([file]) => file.startsWith(STATIC))) {
    await prependNotices(file, names);
  }
  const bundled = contents.flatMap(([, names]) => names);
  const ofLab = await completeLicences(`${LABEXTENSION}/static`, new Set(bundled));
  const linked = await addSnapshotReader();
  await writeComponents(`${STATIC}/components.json`, [...bundled, ...ofLab], linked);
  await publish(STATIC, "../gpuviz/static");
  await publish(LABEXTENSION, "../gpuviz/labextension");
}
