// The licences of the packages that the bundles contain: at the head of each page's script, which
// reports contain too, in the file where JupyterLab looks for them, and in components.json.
import { readdir, readFile, writeFile } from "node:fs/promises";

/** The run time of the module loader, which the builder puts into the labextension. */
const LOADER = "@rspack/core";

/** Returns the packages of which something is in a bundle of esbuild, by its file. */
export function packagesIn(metafile) {
  return Object.entries(metafile.outputs).map(([file, { inputs }]) => {
    const names = Object.keys(inputs)
      .map((input) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(input)?.[1])
      .filter((name) => name !== undefined);
    return [file, [...new Set(names)].sort()];
  });
}

async function component(name) {
  const folder = `node_modules/${name}`;
  const { version, license } = JSON.parse(await readFile(`${folder}/package.json`, "utf8"));
  const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
  return { name, version, license, text: await readFile(`${folder}/${file}`, "utf8") };
}

/** Puts the licences of packages before a script, in a comment. */
export async function prependNotices(path, names) {
  for (const { name, version, text } of await Promise.all(names.map(component))) {
    const notice = `${name} ${version}\n\n${text.trim().replaceAll("*/", "* /")}`;
    await writeFile(path, `/*! Contains ${notice}\n*/\n${await readFile(path, "utf8")}`);
  }
}

/** Completes the builder's list of licences, which has only its own loaders. */
export async function completeLicences(folder, names) {
  const path = `${folder}/third-party-licenses.json`;
  const listed = JSON.parse(await readFile(path, "utf8"));
  const missing = await Promise.all([...names, LOADER].sort().map(component));
  listed.packages.push(
    ...missing.map(({ name, version, license, text }) => {
      return { name, versionInfo: version, licenseId: license, extractedText: text };
    }),
  );
  await writeFile(path, JSON.stringify(listed, null, 2));
  return listed.packages.map(({ name }) => name);
}

/** Writes name, version, licence and its text of packages, for the notices and the SBOM. */
export async function writeComponents(path, names, others) {
  const components = await Promise.all([...new Set(names)].sort().map(component));
  await writeFile(path, JSON.stringify([...components, ...others], null, 2));
}
