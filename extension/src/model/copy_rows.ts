import { ActivityKind } from "./activities.ts";
import { byFirstDifference, groupsOf, Pairs, typicalRow } from "./groups.ts";
import { timesOf, type Times } from "./kernel_rows.ts";
import type { Place, Places } from "./places.ts";
import type { Work } from "./work.ts";

/** In the order of `DICTIONARIES` in gpuviz/recording/tables.py. */
const KINDS = [
  "",
  "host_to_device",
  "device_to_host",
  "device_to_device",
  "host_to_host",
  "peer_to_peer",
];
const OF_HOST = ["", "pageable", "pinned", "managed"];

/** What `Recording.copies()` has in a row, and which copy took longest. */
export interface CopyRow extends Times {
  readonly copyKind: string;
  readonly hostMemory: string;
  readonly place: Place;
  readonly bytes: number;
  readonly bytesPerSecond: number | undefined;
}

/** The copies of a device by kind, most time first, by the rules of gpuviz/analysis/copies.py. */
export function copyRows(work: Work, places: Places, device: number): CopyRow[] {
  const { activities } = work;
  const { kind, device: ordinals, copyKind, bytes, correlation } = activities;
  const rows: number[] = [];
  for (let row = 0; row < activities.count; row += 1) {
    if (kind[row] === ActivityKind.memcpy && ordinals[row] === device) {
      rows.push(row);
    }
  }
  const kinds = new Pairs();
  const memoryOf = (row: number): number => OF_HOST.indexOf(hostMemory(work, row));
  const stackOf = (row: number): number => places.stackOf(places.callOf(correlation[row] ?? 0));
  return groupsOf(rows, (row) => kinds.of(copyKind[row] ?? 0, memoryOf(row)))
    .map((group) => {
      const typical = typicalRow(group, stackOf);
      const times = timesOf(work, group);
      const total = group.reduce((sum, row) => sum + (bytes[row] ?? 0), 0);
      return {
        copyKind: KINDS[copyKind[typical] ?? 0] ?? "",
        hostMemory: hostMemory(work, typical),
        place: places.of(stackOf(typical)),
        ...times,
        bytes: total,
        bytesPerSecond: times.totalNs === 0 ? undefined : (total * 1e9) / times.totalNs,
      };
    })
    .sort(
      byFirstDifference<CopyRow>(
        (left, right) => right.totalNs - left.totalNs,
        (left, right) => right.bytes - left.bytes,
      ),
    );
}

/** The memory on the host's side; of two, pageable if one of them is. */
function hostMemory({ activities }: Work, row: number): string {
  const [from, to] = activities.memoriesOf(row);
  const kind = KINDS[activities.copyKind[row] ?? 0];
  const memory =
    kind === "host_to_device"
      ? from
      : kind === "device_to_host"
        ? to
        : kind !== "host_to_host"
          ? ""
          : to === "pageable"
            ? to
            : from;
  return OF_HOST.includes(memory) ? memory : "";
}
