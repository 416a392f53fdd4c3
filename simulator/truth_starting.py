"""The truth of starting: what a pod waited for before it first ran, second by second.

What happened is told by the steps of its kubelet; what of it can be known, by the events that the
record of the day has. Where those that would tell are missing the truth is that it is not known.
"""

from bisect import bisect_right
from dataclasses import dataclass

from simulator.clock import SECOND
from simulator.events import Told
from simulator.startup import Step
from simulator.truth_facts import NEVER, Facts, Run

MADE = ("Created", "Started")
IMAGES = ("Pulling", "Pulled")


@dataclass(eq=False)
class Image:
    """A container's image, as far as the day's record tells; None: it does not."""

    container: str
    asked: int | None = None
    begun: int | None = None
    moved: int | None = None
    pulled: int | None = None
    is_failing: bool = False


def starting(pod: Facts, begin: int, end: int, days: list[Run]) -> list[tuple[int, str]]:
    """From when on for which cause, should it not have run yet; each day knows its own events."""
    found: list[tuple[int, str]] = []
    for day in days:
        since, until = max(begin, day[0]), min(end, day[1])
        if since < until and (pod.first_run is None or since < pod.first_run):
            found += _Day(pod, since, until, day).causes()
    return found or [(begin, "undetermined")]


class _Day:
    def __init__(self, pod: Facts, begin: int, end: int, day: Run):
        self.pod, self.begin, self.end = pod, begin, end
        latest: dict[int, Told] = {}
        for told in pod.pod.told:
            if day[0] <= told.seen // SECOND < day[1]:
                is_old = latest[told.event].is_listed if told.event in latest else told.is_listed
                latest[told.event] = told._replace(is_listed=is_old)
        self.told = list(latest.values())
        self.old = {t.event for t in self.told if t.is_listed and t.last < day[0]}
        self.ran = pod.first_run if pod.first_run is not None and pod.first_run < end else None
        self.order = _order(pod)
        self.images = [self._image(name) for name in self.order]

    def _of(self, container: str, *reasons: str) -> list[Told]:
        return [t for t in self.told if t.container == container and t.reason in reasons]

    def _image(self, container: str) -> Image:
        found = Image(container)
        asked = self._of(container, "Pulling")
        found.is_failing = any(t.has_image for t in self._of(container, "Failed"))
        here = [t for t in self._of(container, "Pulled") if t.event not in self.old]
        step = next((s for s in self.pod.pod.steps if s.container == container), None)
        if here and step is not None:
            self._told_end(found, step, here, asked)
        known = [t.first for t in asked] + ([] if found.begun is None else [found.begun])
        found.asked = min(known, default=None)
        return found

    @staticmethod
    def _told_end(found: Image, step: Step, here: list[Told], asked: list[Told]) -> None:
        """Clocks of whole seconds: what is told of the time taken is taken from the end."""
        assert step.pulled is not None
        found.pulled = found.begun = step.pulled // SECOND
        if step.is_here or min(t.first for t in here) > found.pulled:
            found.pulled = found.begun = min(t.first for t in here)
            return
        earlier = [i for t in asked for i in (t.first, t.last) if i <= found.pulled]
        found.begun = max(earlier) if earlier else (found.pulled * 1000 - step.waited) // 1000
        if step.waited > step.took:
            found.moved = max(found.begun, (found.pulled * 1000 - step.took) // 1000)

    def _next(self, image: Image) -> int | None:
        """The first sign of what must have come after a pull of which no end is told."""
        assert image.asked is not None
        found = [] if self.ran is None else [self.ran]
        for told in self.told:
            is_mine = told.container == image.container
            if told.reason in MADE or (told.reason in IMAGES and not is_mine):
                for instant in (told.first, told.last):
                    if instant > image.asked or (instant == image.asked and is_mine):
                        found.append(instant)
        return min(found, default=None)

    def _layers(self) -> list[tuple[int, str, int, int]]:
        """What is known, each with its place in the order of trust."""
        found: list[tuple[int, str, int, int]] = []
        for image in self.images:
            if image.asked is None:
                continue
            if image.pulled is None:
                follows = self._next(image)
                if follows is None:
                    found.append((1, "image_pull", image.asked, NEVER))
                elif not image.is_failing:
                    found.append((3, "undetermined", image.asked, follows))
                continue
            assert image.begun is not None
            moved = image.begun if image.moved is None else image.moved
            found.append((1, "image_pull", image.asked, image.begun))
            found.append((2, "image_pull_queue", image.begun, moved))
            found.append((1, "image_pull", moved, image.pulled))
        for image, after in zip(self.images, self.images[1:], strict=False):
            if image.pulled is not None and after.asked is not None:
                found.append((9, "container_start", image.pulled, after.asked))
        if self.images and self.images[-1].pulled is not None:
            found.append((6, "container_start", self.images[-1].pulled, NEVER))
        if (until := self._volumes_until()) is not None:
            found.append((5, "volume", self.begin, until))
        return found

    def _volumes_until(self) -> int | None:
        if self.begin == self.pod.bound and self.images and self.images[0].asked is not None:
            return self.images[0].asked
        failed = [t.last for t in self.told if t.reason == "FailedMount"]
        if not failed:
            return None
        is_prepared = self.ran is not None or any(t.reason in MADE + IMAGES for t in self.told)
        return max(failed) if is_prepared else NEVER

    def causes(self) -> list[tuple[int, str]]:
        """From when on for which cause."""
        layers = self._layers()
        waiting = self.pod.pod.seen.waiting
        waiting_at = [t for t, _ in waiting]
        times = {self.begin} | {t for _, _, b, e in layers for t in (b, e)} | set(waiting_at)

        def cause(now: int) -> str:
            known = [(rank, name) for rank, name, begin, end in layers if begin <= now < end]
            told = bisect_right(waiting_at, now) - 1
            word = waiting[told][1] if told >= 0 else "undetermined"
            ranks = {"crash_loop": 4, "image_pull": 7, "init": 8}
            if word in ranks:
                known.append((ranks[word], word))
            return min(known)[1] if known else "undetermined"

        return [(now, cause(now)) for now in sorted(times) if self.begin <= now < self.end]


def _order(pod: Facts) -> list[str]:
    """The containers as they start, up to the last that is waited for."""
    containers = pod.pod.containers
    listed = [c for c in containers if c.kind != "main"]
    listed += [c for c in containers if c.kind == "main"]
    asking = pod.pod.asking()
    last = max(place for place, c in enumerate(listed, 1) if c in asking)
    return [c.name for c in listed[:last]]
