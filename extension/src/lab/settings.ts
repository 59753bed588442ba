import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { ISettingRegistry } from "@jupyterlab/settingregistry";
import { type JSONObject, Token } from "@lumino/coreutils";

import { type GroupedBy, GROUPINGS } from "../model/block_groups.ts";

const ID = "gpuviz:settings";

/** The user's settings of gpuviz; the schema describes them and their defaults. */
export interface Settings {
  /** Options of a recording that a button or a command starts. */
  recordingOptions: () => JSONObject;
  /** Options of a report that a button or a command writes. */
  reportOptions: () => JSONObject;
  /** The initial colouring of blocks in opened recordings. */
  colourBy: () => GroupedBy;
}

export const ISettings = new Token<Settings>("gpuviz:ISettings");

export const settings: JupyterFrontEndPlugin<Settings> = {
  id: ID,
  description: "What gpuviz records by default, and what its reports contain.",
  autoStart: true,
  provides: ISettings,
  optional: [ISettingRegistry],
  activate: (_: JupyterFrontEnd, registry: ISettingRegistry | null): Settings => {
    let current: ISettingRegistry.ISettings | undefined;
    registry?.load(ID).then(
      (loaded) => {
        current = loaded;
      },
      (error: unknown) => console.error(`gpuviz: the settings cannot be read: ${String(error)}`),
    );
    const isOn = (name: string, otherwise: boolean): boolean => {
      const value = current?.composite[name];
      return typeof value === "boolean" ? value : otherwise;
    };
    return {
      recordingOptions: () => ({
        observe: isOn("observe", false),
        stacks: isOn("stacks", true),
        streams: isOn("streams", true),
      }),
      reportOptions: () => ({ redact: isOn("redact", false) }),
      colourBy: () =>
        GROUPINGS.find(([by]) => by === current?.composite["colourBy"])?.[0] ?? "stack",
    };
  },
};
