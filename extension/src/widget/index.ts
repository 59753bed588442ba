import "../view/theme.css";
import "./reset.css";
import "../view/charts.css";
import "../view/controls.css";
import "../view/selected.css";
import "../view/tables.css";
import "../view/host.css";

import { LiveView } from "./live_view.ts";
import type { WidgetModel } from "./model.ts";
import { Session } from "./session.ts";

interface Hooks {
  initialize(context: { model: WidgetModel }): () => void;
  render(context: { model: WidgetModel; el: HTMLElement }): () => void;
}

/** What anywidget asks for, once for each model. */
export default function timeline(): Hooks {
  let session: Session | undefined;
  return {
    initialize: ({ model }) => {
      const begun = new Session(model);
      session = begun;
      return () => begun.scope.dispose();
    },
    render: ({ model, el }) => {
      const shown = (session ??= new Session(model));
      const view = new LiveView(el, shown);
      view.scope.defer(shown.addView());
      return () => view.scope.dispose();
    },
  };
}
