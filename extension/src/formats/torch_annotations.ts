import type { PickleValue } from "../wire/pickle_value.ts";
import { dictOf, listOf, sizeOf, textOf, type Place, type RowBudget } from "./snapshot_values.ts";

/** A start or an end of a range that the user named. */
export interface TorchAnnotation {
  readonly name: string;
  readonly isStart: boolean;
  readonly device: number;
  readonly timeUs: number;
}

/** The `external_annotations` of a snapshot; those without a name or a stage are left out. */
export function readAnnotations(annotations: PickleValue, budget: RowBudget): TorchAnnotation[] {
  const place: Place = { list: "external_annotations" };
  const found: TorchAnnotation[] = [];
  for (const [position, values] of listOf(annotations, place).entries()) {
    place.position = position;
    const items = dictOf(values, place);
    budget.take(items.length, place);
    const annotation = annotationOf(items, place);
    if (annotation !== undefined) {
      found.push(annotation);
    }
  }
  return found;
}

function annotationOf(items: readonly PickleValue[], place: Place): TorchAnnotation | undefined {
  let name: string | undefined;
  let stage: string | undefined;
  let device = 0;
  let timeUs = 0;
  for (let index = 0; index + 1 < items.length; index += 2) {
    const value = items[index + 1];
    switch (items[index]) {
      case "name":
        name = textOf(value, place, "name");
        break;
      case "stage":
        stage = textOf(value, place, "stage");
        break;
      case "device":
        device = typeof value === "number" ? value : 0;
        break;
      case "time_us":
        timeUs = sizeOf(value, place, "time_us");
        break;
    }
  }
  return name === undefined || stage === undefined
    ? undefined
    : { name, isStart: stage === "START", device, timeUs };
}
