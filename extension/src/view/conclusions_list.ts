import { counted } from "../base/format.ts";
import type { Scope } from "../base/scope.ts";
import type { Conclusion } from "../model/conclusions.ts";
import type { Place } from "../model/sections.ts";
import { element, withCode } from "./dom.ts";

export type Lead = (place: Place) => void;

/** The first few conclusions, each in as many lines as it takes, and how many there are. */
export function firstConclusions(
  scope: Scope,
  said: readonly Conclusion[],
  lead: Lead,
): HTMLElement {
  const root = element("div", "gpuviz-first");
  const list = element("ol", "");
  const first = said.filter(({ isFirst }) => isFirst);
  for (const each of first) {
    const kind = each.isAlarm ? "alarm" : "note";
    const line = element("li", `gpuviz-first__line gpuviz-first__line--${kind}`);
    const title = element("span", "gpuviz-first__title");
    title.append(...withCode(each.title));
    const why = { tab: "findings", number: each.number };
    line.append(
      element("strong", "gpuviz-first__saving", each.saving),
      title,
      ...showLink(scope, each, lead),
      link(scope, "why", () => lead(why)),
    );
    list.append(line);
  }
  root.append(list);
  if (said.length > first.length) {
    const all = link(scope, `all ${said.length}`, () => lead({ tab: "findings" }));
    all.classList.add("gpuviz-first__all");
    root.append(all);
  }
  return root;
}

/** Conclusions with what explains them; many are folded. */
export function conclusionsList(
  scope: Scope,
  said: readonly Conclusion[],
  lead: Lead,
): HTMLElement {
  const root = element("div", "gpuviz-conclusions");
  const listOf = (shown: readonly Conclusion[]): HTMLElement => {
    const list = element("ul", "gpuviz-findings");
    for (const each of shown) {
      const item = element("li", "");
      item.append(conclusion(scope, each, lead));
      list.append(item);
    }
    return list;
  };
  const folded = said.filter(({ isFolded }) => isFolded);
  root.append(listOf(said.filter(({ isFolded }) => !isFolded)));
  if (folded.length > 0) {
    const details = element("details", "");
    details.append(element("summary", "", counted(folded.length, "more finding")), listOf(folded));
    root.append(details);
  }
  return root;
}

function conclusion(scope: Scope, said: Conclusion, lead: Lead): HTMLElement {
  const kind = said.isAlarm ? "alarm" : "note";
  const root = element("div", `gpuviz-finding gpuviz-finding--${kind}`);
  root.dataset["item"] = String(said.number);
  const title = element("strong", "");
  title.append(...withCode(said.title));
  root.append(title, " ", ...showLink(scope, said, lead));
  for (const sentence of said.sentences) {
    const text = element("div", "");
    text.append(...withCode(sentence));
    root.append(text);
  }
  if (said.lines.length > 0) {
    const list = element("ul", "gpuviz-finding__lines");
    for (const { source, site, shortSite, amount } of said.lines) {
      const item = element("li", "");
      const line = element("span", "");
      line.append(
        ...(source === "" ? [] : [element("code", "gpuviz-code", source), " "]),
        element("span", "gpuviz-place", { textContent: shortSite, title: site }),
      );
      item.append(line, " ", element("span", "gpuviz-finding__amount", amount));
      list.append(item);
    }
    root.append(list);
  }
  return root;
}

function showLink(scope: Scope, { place }: Conclusion, lead: Lead): HTMLElement[] {
  return place === undefined ? [] : [link(scope, "show", () => lead(place))];
}

export function link(scope: Scope, label: string, act: () => void): HTMLButtonElement {
  const created = element("button", "gpuviz-link", { textContent: label, type: "button" });
  scope.listen(created, "click", act);
  return created;
}
