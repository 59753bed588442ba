import "../view/theme.css";
import "./reset.css";
import "../view/charts.css";
import "../view/controls.css";
import "../view/selected.css";
import "../view/tables.css";
import "../view/whole_memory.css";
import "../view/findings.css";
import "../view/host.css";
import "../view/workbench.css";

import { LiveView } from "./live_view.ts";
import { Session, type WidgetModel } from "./session.ts";

/** What anywidget asks for, once for each model. */
export default function timeline() {
  let session: Session | undefined;
  return {
    initialize: ({ model }: { model: WidgetModel }) => {
      const begun = new Session(model);
      session = begun;
      return () => begun.scope.dispose();
    },
    render: ({ model, el }: { model: WidgetModel; el: HTMLElement }) => {
      const shown = (session ??= new Session(model));
      const view = new LiveView(el, shown, model);
      view.scope.defer(shown.addView());
      return () => view.scope.dispose();
    },
  };
}
