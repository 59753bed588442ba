import type { DeviceContents } from "./device_contents.ts";
import type { Lane } from "./lane.ts";
import type { Process } from "./processes.ts";

/**
 * The lanes of a recording: of several devices or processes a group for each, that of the device
 * shown first; of a single process the host's threads above them. Quiet threads come last.
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
  return quietLast([
    ...lanes.threads,
    ...devices.flatMap((of) => ofDevice(of, several ? `GPU ${of}` : undefined, contents)),
  ]);
}

function lanesOf({ name, devices, threads }: Process, contents: DeviceContents): Lane[] {
  const { lanes, device, gpu } = contents;
  const hosts = lanes.threads.filter(({ thread }) => thread !== undefined && threads.has(thread));
  const ordered = shownFirst(devices.keys(), device);
  const groupOf = (of: number): string => gpu.processes.deviceName(of) ?? name;
  const [only] = ordered.length === 1 ? ordered : [];
  const hostGroup = only === undefined ? name : groupOf(only);
  return [
    ...hosts.map((lane) => inGroup(lane, hostGroup)),
    ...ordered.flatMap((of) => ofDevice(of, groupOf(of), contents)),
  ];
}

function quietLast(lanes: readonly Lane[]): Lane[] {
  return [...lanes].sort((left, right) => Number(!!left.isQuiet) - Number(!!right.isQuiet));
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
  const own = [...(memory === undefined ? [] : [memory]), ...lanes.ofDevice(device)];
  return group === undefined ? own : own.map((lane) => inGroup(lane, group));
}

function inGroup({ title, stream, stack, device }: Lane, group: string): Lane {
  return { title, stream, stack, device, group };
}
