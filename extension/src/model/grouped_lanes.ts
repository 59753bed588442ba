import type { DeviceContents } from "./device_contents.ts";
import type { Lane } from "./lane.ts";
import type { Process } from "./processes.ts";

/**
 * The lanes of a recording: of several devices or processes a group for each, that of the device
 * shown first; below the streams of a process its threads. Quiet threads come last.
 */
export function groupedLanes(contents: DeviceContents): readonly Lane[] {
  const { lanes, device, gpu } = contents;
  const { all } = gpu.processes;
  if (all.length > 0) {
    const isShown = (process: Process): boolean => process.devices.has(device);
    const ordered = [...all.filter(isShown), ...all.filter((process) => !isShown(process))];
    return ordered.flatMap((process) => lanesOf(process, contents));
  }
  const devices = shownFirst(new Set([device, ...gpu.devices]), device);
  const several = devices.length > 1;
  return [
    ...devices.flatMap((of) => ofDevice(of, several ? `GPU ${of}` : undefined, contents)),
    ...quietLast(lanes.threads, several ? "Host threads" : undefined),
  ];
}

function lanesOf({ name, devices, threads }: Process, contents: DeviceContents): Lane[] {
  const { lanes, device, gpu } = contents;
  const hosts = lanes.threads.filter(({ thread }) => thread !== undefined && threads.has(thread));
  const ordered = shownFirst(devices.keys(), device);
  const groupOf = (of: number): string => gpu.processes.deviceName(of) ?? name;
  const [only] = ordered.length === 1 ? ordered : [];
  const hostGroup = only === undefined ? name : groupOf(only);
  return [
    ...ordered.flatMap((of) => ofDevice(of, groupOf(of), contents)),
    ...quietLast(hosts, hostGroup),
  ];
}

function quietLast(threads: readonly Lane[], group: string | undefined): readonly Lane[] {
  const ordered = [...threads].sort(
    (left, right) => Number(!!left.isQuiet) - Number(!!right.isQuiet),
  );
  return inGroup(ordered, group);
}

function shownFirst(devices: Iterable<number>, shown: number): number[] {
  return [...devices].sort(
    (left, right) => Number(right === shown) - Number(left === shown) || left - right,
  );
}

function ofDevice(
  device: number,
  group: string | undefined,
  { lanes, gpu }: DeviceContents,
): readonly Lane[] {
  const memory = gpu.memoryOperations.laneOf(device);
  const own = [...lanes.ofDevice(device), ...(memory === undefined ? [] : [memory])];
  return inGroup(own, group);
}

function inGroup(lanes: readonly Lane[], group: string | undefined): readonly Lane[] {
  return group === undefined ? lanes : lanes.map((lane) => ({ ...lane, group }));
}
