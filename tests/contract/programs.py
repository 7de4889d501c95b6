"""Programs of a few streams, written down in words, each step of which races or does not.

    a writes x, b after a, b reads x[:4], c reads x !RAW a

Streams are letters; `blocking`, `blocking2`, `legacy`, `thread` (the per-thread stream) and `other` (of another device)
are what their names say. Arrays are u to z. `a fills x 2` sets it, `a copies x y` copies x to y. `a marks e` records an
event, which is waited for like a stream. `host after a` is a wait of the host; when `a completes`, nobody here knows. A
`!` says that the step is a race, and may say of which kind, with which stream; `+2` says that it adds two waits. Where
waits are counted, other steps add none. `a launches wx` is a launch of a graph that writes to x, `rx` of one that reads
it. From `a stops` to `a goes` a gate holds what the stream gets. `a waits` says that it is not through with what it
has, and `a finishes` that the host may wait until it is; so may events.
"""

import pytest

import anabranch as ab

from .accesses import complete, read, ready, write

SPECIAL = {"legacy": ab.legacy_stream, "thread": ab.per_thread_stream}


class Program:
    """What the names stand for, made when they first occur. `work` is what `a works` does to a stream."""

    def __init__(self, device, other=None, work=lambda stream: stream.submit(int), wait=None, follow=None, **given):
        self.device, self.other, self.work = device, other, work
        self.wait = wait or (lambda queue: queue.synchronize())
        self.follow = follow or (lambda stream, earlier: stream.wait_stream(earlier))
        self.read, self.write, self.added = read, write, None
        self.streams, self.events, self.gates = given, {}, {}
        self.arrays = {name: ready(device) for name in "uvxyz"}
        self.graphs = {}

    def stream(self, name):
        if name not in self.streams:
            device = self.other if name == "other" else self.device
            make = SPECIAL.get(name) or (lambda device: ab.Stream(device, non_blocking=not name.startswith("blocking")))
            self.streams[name] = make(device)
        return self.streams[name]

    def queue(self, name):
        """Return the event or the stream of a name."""
        return self.events.get(name) or self.stream(name)

    def run(self, text):
        for step in text.split(", "):
            action, refused, race = step.partition(" !")
            action, _, waits = action.partition(" +")
            if refused:
                self.refused(action, *race.split())
            else:
                self.do(*action.split())
            if self.added:
                assert self.added() == int(waits or 0), step

    def run_to_the_end(self, text):
        """Run a program, then let go of all streams, which come to their ends."""
        self.run(text)
        for gate in self.gates.values():
            gate.open()
        for name in (*self.streams, *self.events):
            self.queue(name).synchronize()

    def refused(self, action, kind=None, first=None):
        with pytest.raises(ab.RaceError) as caught:
            self.do(*action.split())
        assert kind in (None, caught.value.kind)
        assert first is None or caught.value.first.stream == self.stream(first)

    def capture(self, text, joined=""):
        """Run a program in a capture of the stream `a`, or of another that those in `joined` have waited for."""
        captured = ab.Stream(self.device) if joined else self.stream("a")
        with ab.capture(captured) as graph:
            for name in joined:
                self.stream(name).wait_stream(captured)
            self.run(text)
        return graph

    def launch(self, name, stream):
        if name not in self.graphs:
            with ab.capture(ab.Stream(self.device)) as self.graphs[name]:
                {"r": self.read, "w": self.write}[name[0]](self.arrays[name[1]], ab.current_stream())
        self.graphs[name].launch(stream)

    def do(self, who, verb, what="", value=None):
        if verb == "reads":
            self.read(eval(what, {}, self.arrays), self.stream(who))
        elif verb == "writes":
            self.write(eval(what, {}, self.arrays), self.stream(who))
        elif verb == "fills":
            ab.fill(self.arrays[what], int(value), stream=self.stream(who))
        elif verb == "copies":
            ab.copy(self.arrays[value], self.arrays[what], stream=self.stream(who))
        elif verb == "launches":
            self.launch(what, self.stream(who))
        elif verb == "marks":
            self.events.setdefault(what, ab.Event(device=self.stream(who).device)).record(self.stream(who))
        elif who == "host":
            awaited = self.queue(what)
            if verb == "asks":
                assert awaited.query()
            else:
                self.wait(awaited)
        elif verb == "after":
            stream = self.stream(who)
            stream.wait_event(self.events[what]) if what in self.events else self.follow(stream, self.stream(what))
        elif verb == "closes":
            self.queue(who).close()
        elif verb == "stops":
            self.gates[who] = ab.testing.Gate(self.stream(who))
        elif verb == "goes":
            self.gates.pop(who).open()
        elif verb == "waits":
            assert not self.queue(who).query()
        elif verb == "finishes":
            self.queue(who).synchronize()
            assert self.queue(who).query()
        else:
            {"works": self.work, "completes": complete}[verb](self.stream(who))


def each_program(programs):
    return pytest.mark.parametrize("program", programs.values(), ids=programs)
