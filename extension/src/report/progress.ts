import type { Scope } from "../base/scope.ts";
import { element } from "../view/dom.ts";

/** Shows a progress bar above the charts; returns a function that sets the share read, 0 to 1. */
export function showProgress(scope: Scope): (share: number) => void {
  const label = element("label", "gpuviz-reading");
  const bar = element("progress", "", { max: 1 });
  const text = element("span", "");
  label.append("Reading the recording: ", bar, text);
  document.querySelector("main")?.prepend(label);
  scope.defer(() => label.remove());
  return (share) => {
    bar.value = share;
    text.textContent = ` ${Math.floor(share * 100)} %`;
  };
}
