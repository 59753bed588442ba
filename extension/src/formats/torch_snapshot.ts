import { PickleItems, type PickleValue } from "../wire/pickle_value.ts";
import { listOf, RowBudget } from "./snapshot_values.ts";
import { readAnnotations, type TorchAnnotation } from "./torch_annotations.ts";
import { TorchEvents } from "./torch_events.ts";
import { TorchPools } from "./torch_pools.ts";
import { TorchSegments } from "./torch_segments.ts";
import { TorchStacks } from "./torch_stacks.ts";

/** What is in a file of torch.cuda.memory._snapshot(), column by column. */
export class TorchSnapshot {
  readonly stacks = new TorchStacks();
  readonly pools = new TorchPools();
  readonly events = new TorchEvents(this.stacks, this.pools);
  readonly segments = new TorchSegments(this.stacks, this.pools);
  annotations: readonly TorchAnnotation[] = [];
  /** The allocator's. */
  settings: PickleValue = undefined;
  /** What gpuviz wrote. */
  recorder: PickleValue = undefined;

  /** `fileBytes` bounds how often the file may name one row. */
  constructor(root: PickleValue, fileBytes: number) {
    const budget = new RowBudget(fileBytes);
    if (root instanceof PickleItems && root.kind === "list") {
      // torch.cuda.memory_snapshot() is the list of segments alone.
      this.segments.read(root, budget);
      return;
    }
    const items = root instanceof PickleItems && root.kind === "dict" ? root.items : [];
    let hasSegments = false;
    for (let index = 0; index + 1 < items.length; index += 2) {
      hasSegments ||= items[index] === "segments";
      this.#take(items[index], items[index + 1], budget);
    }
    if (!hasSegments) {
      throw new Error('It is no torch memory snapshot: expected a dict with "segments".');
    }
  }

  #take(key: PickleValue, value: PickleValue, budget: RowBudget): void {
    if (value === undefined) {
      return;
    }
    switch (key) {
      case "segments":
        this.segments.read(value, budget);
        break;
      case "device_traces":
        this.events.read(value, budget);
        break;
      case "external_annotations":
        this.annotations = this.annotations.concat(readAnnotations(value, budget));
        break;
      case "allocator_settings":
        this.settings = value;
        break;
      case "host_segments":
        this.segments.hostCount += listOf(value, { list: "host_segments" }).length;
        break;
      case "gpuviz":
        this.recorder = value;
        break;
    }
  }
}
