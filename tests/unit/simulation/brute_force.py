"""The expected behaviour of a simulated GPU, recomputed from the rules each time.

The host makes one call after the other; whenever it waits, the schedule of all work issued so far
is recomputed time by time, by examining every piece of work.
"""

import math
from dataclasses import dataclass, field

CALL_NS = 1000
LAUNCH_LATENCY_NS = 3000
COPY_LATENCY_NS = 1000
STAGED_BYTES = 64 << 10
MULTIPROCESSORS = 132
RATES = {"pinned": 55.0, "pageable": 8.0, "device": 1500.0, "fill": 3000.0}
ONE_AT_A_TIME = ("host_to_device", "device_to_host", "device_memory")


@dataclass
class Work:
    """A piece of work with its start and end."""

    stream: int
    after: list["Work"]
    arrival: int
    engine: str = "none"
    duration: int = 0
    share: int = 1
    priority: int = 0
    label: tuple = ()
    start: int | None = None
    end: int | None = None

    def ready(self):
        """Return the earliest possible start: after its arrival and the end of its dependencies."""
        return max([self.arrival, *(each.end for each in self.after)])

    def may_begin(self, now):
        return (
            self.start is None
            and self.arrival <= now
            and all(each.end is not None and each.end <= now for each in self.after)
        )


def schedule(works):
    """Compute the start and end of all work."""
    for work in works:
        work.start = work.end = None
    now = 0
    while any(work.start is None for work in works):
        moments = [work.arrival for work in works] + [work.end for work in works if work.end]
        now = min(moment for moment in moments if moment > now)
        passing = True
        while passing:
            passing = [work for work in works if work.engine == "none" and work.may_begin(now)]
            for work in passing:
                work.start = work.end = now
        for engine in ("multiprocessors", *ONE_AT_A_TIME):
            begin_on(engine, works, now)


def begin_on(engine, works, now):
    mine = [work for work in works if work.engine == engine]
    room = MULTIPROCESSORS if engine == "multiprocessors" else 1
    room -= sum(work.share for work in mine if work.start is not None and work.end > now)
    able = [work for work in mine if work.may_begin(now)]
    for work in sorted(able, key=lambda each: (each.priority, each.ready())):
        if work.share > room:
            return
        room -= work.share
        work.start = now
        work.end = now + work.duration


@dataclass
class BruteForce:
    """A host and its GPU; streams are numbers, of which 0 is the default stream."""

    kinds: dict[int, str]
    priorities: dict[int, int]
    now: int = 0
    works: list[Work] = field(default_factory=list)
    records: dict[int, Work] = field(default_factory=dict)
    calls: list[tuple[str, int, int]] = field(default_factory=list)

    def before(self, stream):
        def is_before(other):
            if other == stream:
                return True
            pair = {self.kinds[other], self.kinds[stream]}
            return pair == {"default", "blocking"}

        return [work for work in self.works if is_before(work.stream)]

    def add(self, stream, **work):
        after = [*self.before(stream), *work.pop("also_after", ())]
        self.works.append(Work(stream, after, self.now + LAUNCH_LATENCY_NS, **work))
        return self.works[-1]

    def wait_for(self, works):
        schedule(self.works)
        self.now = max([self.now, *(work.end for work in works)])

    def call(self, name, make):
        began = self.now
        make()
        self.now += CALL_NS
        self.calls.append((name, began, self.now))

    def launch(self, stream, name, duration, share, also_after=()):
        return self.add(
            stream,
            engine="multiprocessors",
            duration=duration,
            share=share,
            priority=self.priorities[stream],
            label=("kernel", name, 0),
            also_after=also_after,
        )

    def graph(self, stream, kernels, previous):
        for name, duration, share in kernels:
            previous = [self.launch(stream, name, duration, share, previous)]
        return previous

    def copy(self, stream, kind, nbytes, *, pinned, blocking):
        memory = "pinned" if pinned else "pageable"
        if kind == "device_to_device":
            memory = "device"
        work = self.add(
            0 if blocking else stream,
            engine="device_memory" if kind == "device_to_device" else kind,
            duration=COPY_LATENCY_NS + math.ceil(nbytes / RATES[memory]),
            label=("memcpy", "", nbytes),
        )
        staged = kind == "host_to_device" and memory == "pageable" and nbytes <= STAGED_BYTES
        if kind != "device_to_device" and not staged and (blocking or not pinned):
            self.wait_for([work])

    def fill(self, stream, nbytes):
        self.add(
            stream,
            engine="device_memory",
            duration=COPY_LATENCY_NS + math.ceil(nbytes / RATES["fill"]),
            label=("memset", "", nbytes),
        )

    def record(self, event, stream):
        self.records[event] = self.add(stream, label=("record",))

    def wait_event(self, stream, event):
        if event in self.records:
            self.add(stream, also_after=[self.records[event]])

    def synchronize_stream(self, stream):
        works = self.before(stream)
        self.wait_for([work for work in works if stream in {0, work.stream}])

    def synchronize_event(self, event):
        self.wait_for([self.records[event]] if event in self.records else [])

    def finish(self):
        """Return the activities and the times of event records."""
        schedule(self.works)
        labelled = [(work.start, work.end, *work.label) for work in self.works if work.label]
        activities = sorted(row for row in labelled if row[2] != "record")
        return activities, sorted(row[0] for row in labelled if row[2] == "record")
