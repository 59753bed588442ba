import type { Scope } from "../base/scope.ts";
import type { DeviceView } from "../view/device_view.ts";
import { actionButton, element } from "../view/dom.ts";
import type { TimeRange } from "../view/time_window.ts";
import type { WidgetModel } from "./session.ts";

type Button = readonly [label: string, title: string, isDisabled?: boolean];
type Section = readonly [device: number, name: string, title: string, html: string];

/** What the kernel writes beside the charts, in this order; its HTML has no text unescaped. */
const TEXTS = ["numbers", "held", "findings"] as const;

/**
 * The buttons of a dashboard in its header, and what the kernel says below; nothing of a timeline.
 *
 * `show` shows the time that a finding is about.
 */
export function dashboardParts(
  scope: Scope,
  header: HTMLElement,
  model: WidgetModel,
  show: (span: TimeRange) => void,
): readonly HTMLElement[] {
  if (model.get("buttons") === undefined) {
    return [];
  }
  const follow = (name: string, show: (shown: Scope) => void): void =>
    followValue(scope, model, name, show);
  const buttonsOf = (
    place: HTMLElement,
    name: string,
    press: (button: Button, at: number) => void,
  ): void =>
    follow(name, (shown) => {
      const buttons = (model.get(name) as readonly Button[]).map((each, at) => {
        const [label, title, disabled = false] = each;
        return Object.assign(
          actionButton(shown, label, title, () => press(each, at)),
          { disabled },
        );
      });
      place.replaceChildren(...buttons);
    });
  const actions = element("div", "gpuviz-controls");
  header.prepend(actions);
  buttonsOf(actions, "buttons", ([name]) => model.send({ press: name }));
  const message = element("p", "gpuviz-live__text", { role: "status" });
  follow("message", () => {
    message.textContent = String(model.get("message"));
  });
  const texts = TEXTS.map((name) => {
    const place = element("div", `gpuviz-live__text gpuviz-live__text--${name}`);
    const text = element("div", "");
    place.append(text);
    leadToTimes(scope, text, show);
    follow(name, () => {
      text.innerHTML = String(model.get(name));
    });
    if (name === "held") {
      const offers = element("div", "gpuviz-controls");
      place.append(offers);
      buttonsOf(offers, "releases", (_, release) => model.send({ release }));
    }
    return place;
  });
  return [message, ...texts];
}

/** What the kernel says about a device of a finished recording, in tabs of the drawer. */
export function drawerSections(
  { scope, drawer, chart }: DeviceView,
  model: WidgetModel,
  device: number,
): void {
  followValue(scope, model, "sections", (shown) => {
    for (const [of, name, title, html] of (model.get("sections") ?? []) as readonly Section[]) {
      if (of === device || of < 0) {
        const panel = element("div", "");
        panel.innerHTML = html;
        leadToTimes(shown, panel, (span) => chart.selection.showMeasured(span));
        drawer.add(shown, name, title).append(panel);
      }
    }
  });
}

function followValue(
  scope: Scope,
  model: WidgetModel,
  name: string,
  show: (shown: Scope) => void,
): void {
  const again = scope.follow(show);
  const event = `change:${name}`;
  model.on(event, again);
  scope.defer(() => model.off(event, again));
}

/** Lets the buttons in a text of the kernel lead to their times. */
function leadToTimes(scope: Scope, text: HTMLElement, show: (span: TimeRange) => void): void {
  scope.listen(text, "click", ({ target }) => {
    const { window } = (target as HTMLElement).dataset;
    if (window !== undefined) {
      const [fromNs = 0, toNs = 0] = window.split("-").map(Number);
      show({ fromNs, toNs });
    }
  });
}
