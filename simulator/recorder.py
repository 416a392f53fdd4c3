"""The recorder: what a list and a watch would have written, line by line, and when it looked.

What the objects look like belongs to `nodes`, `pods` and `groups`; what follows from the lines to
`truth`.
"""

from random import Random

from simulator.clock import SECOND, iso_micro
from simulator.owners import KINDS

FILES = {
    "pods": ("Pod", "v1", "v1_pods"),
    "nodes": ("Node", "v1", "v1_nodes"),
    "namespaces": ("Namespace", "v1", "v1_namespaces"),
    "groups": (
        "PodGroup",
        "scheduling.volcano.sh/v1beta1",
        "scheduling.volcano.sh_v1beta1_podgroups",
    ),
    "events": ("Event", "v1", "v1_events"),
    **KINDS,
}


class Stream:
    """One kind's lines. While it does not listen, what happens leaves no trace."""

    def __init__(self, kind: str, rng: Random):
        self.kind, self.version, self.file = FILES[kind]
        self.rng = rng
        self.lines: list[str] = []
        self.listening = False
        self.last = 0
        self.first = 0
        self.gaps: list[tuple[int, int]] = []
        """Begin and end of each gap of the record, in whole seconds."""

    def look(self, now: int) -> int:
        """When the next line will be seen: a moment after the fact, never before the last."""
        self.last = max(self.last + 1, now + self.rng.randrange(50_000, 900_000))
        self.first = self.first or self.last
        return self.last

    def write(self, seen: int, change: str, body: str) -> None:
        """One line."""
        self.lines.append(
            f'{{"observed_at":"{iso_micro(seen)}","type":"{change}","object":{body}}}\n'
        )

    def list(self, now: int, bodies: list[str]) -> int:
        """A list, and from now on the watch; a list after other lines ends a gap of the record."""
        before = self.last
        seen = self.look(now)
        if self.lines:
            self.gaps.append((before // SECOND, seen // SECOND))
        for body in bodies:
            self.write(seen, "LISTED", body)
        self.listening = True
        return seen

    def bookmark(self, now: int, revision: int) -> None:
        """The server says that the watch is alive; nothing changed."""
        if self.listening:
            self.write(
                self.look(now),
                "BOOKMARK",
                f'{{"kind":"{self.kind}","apiVersion":"{self.version}",'
                f'"metadata":{{"resourceVersion":"{revision}","creationTimestamp":null}}}}',
            )
