/** The part of anywidget's model that is used here. */
export interface WidgetModel {
  send(content: unknown): void;
  on(event: "msg:custom", handler: (content: unknown, buffers: DataView[]) => void): void;
  on(event: "comm_live_update", handler: () => void): void;
  off(event: string, handler: (...values: never[]) => void): void;
}
