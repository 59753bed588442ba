import type { DeviceContents } from "./device_contents.ts";
import type { Lane } from "./lanes.ts";
import type { Process } from "./processes.ts";

/** The lanes of a merged recording: a group for each process and device, that of the shown first. */
export function processLanes(contents: DeviceContents): readonly Lane[] {
  const { device, gpu } = contents;
  const isShown = (process: Process): boolean => process.devices.has(device);
  const { all } = gpu.processes;
  const ordered = [...all.filter(isShown), ...all.filter((process) => !isShown(process))];
  return ordered.flatMap((process) => lanesOf(process, contents));
}

function lanesOf(
  { name, devices, threads }: Process,
  { lanes, device, gpu }: DeviceContents,
): Lane[] {
  const hosts = lanes.threads.filter(({ thread }) => thread !== undefined && threads.has(thread));
  const ordered = [...devices.keys()].sort(
    (left, right) => Number(right === device) - Number(left === device) || left - right,
  );
  const groupOf = (of: number): string => gpu.processes.deviceName(of) ?? name;
  const [only] = ordered.length === 1 ? ordered : [];
  const hostGroup = only === undefined ? name : groupOf(only);
  return [
    ...hosts.map((lane) => inGroup(lane, hostGroup)),
    ...ordered.flatMap((of) => {
      const memory = gpu.memoryOperations.laneOf(of);
      const own = [...(memory === undefined ? [] : [memory]), ...lanes.ofDevice(of)];
      return own.map((lane) => inGroup(lane, groupOf(of)));
    }),
  ];
}

function inGroup({ title, stream, stack }: Lane, group: string): Lane {
  return { title, stream, stack, group };
}
