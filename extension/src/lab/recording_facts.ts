import type { TranslationBundle } from "@jupyterlab/translation";

import { element } from "../view/dom.ts";

/** The main facts of a recording: the program, the time, and anything unusual. */
export function factsOf(
  manifest: Readonly<Record<string, unknown>>,
  words: TranslationBundle,
): HTMLElement[] {
  const facts: HTMLElement[] = [];
  const { program, created, label, notes, complete, dropped } = manifest;
  const texts = Array.isArray(program) ? program.map(String) : [];
  const what = [texts.join(" "), typeof created === "string" ? when(created) : ""].filter(Boolean);
  if (what.length > 0) {
    facts.push(element("p", "gpuviz-recording__program", what.join(" · ")));
  }
  const warnings = [
    ...(typeof label === "string" && label !== "" ? [label] : []),
    ...(typeof dropped === "number" && dropped > 0
      ? [words.__("%1 events were dropped because buffers were full.", dropped)]
      : []),
    ...(complete === false ? [words.__("The recording was not stopped properly.")] : []),
    ...(Array.isArray(notes) ? notes.map(String) : []),
  ];
  return [...facts, ...warnings.map((text) => element("p", "gpuviz-recording__note", text))];
}

function when(created: string): string {
  const date = new Date(created);
  return Number.isNaN(date.getTime()) ? created : date.toLocaleString();
}
