import type { Scope } from "../base/scope.ts";
import { copyText } from "../view/copy_text.ts";
import type { DeviceView } from "../view/device_view.ts";
import { actionButton } from "../view/dom.ts";
import type { TimeRange } from "../view/time_window.ts";

/** Adds to the numbers of the selected span a button that copies a command, which writes the span. */
export function offerSpanCommand(scope: Scope, { chart, drawer }: DeviceView): void {
  const { measured } = chart.selection;
  const command = actionButton(
    scope,
    "Copy command",
    "The command that writes this span as a recording of its own",
    () => {
      copyText(commandFor(measured.value));
      chart.say("Copied.");
    },
  );
  drawer.top.querySelector(".gpuviz-measured__values")?.before(command);
}

/** The page knows its file only where it is a file's page. */
function commandFor(span: TimeRange | undefined): string {
  const [file = "RECORDING.gpuviz"] = /[^/]+\.html$/.exec(location.pathname) ?? [];
  const quoted = `'${decodeURIComponent(file).replaceAll("'", "'\\''")}'`;
  return `gpuviz convert ${quoted} span.gpuviz --range ${span?.fromNs}ns:${span?.toNs}ns`;
}
