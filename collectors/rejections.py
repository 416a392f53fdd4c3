"""What could not be used, or was set aside: counted by file, reason and day, with how to mend it.

Whether so many are too many belongs to `pipelines`; which reasons lose no row to `models.raw`.
"""

from collections.abc import Iterator
from datetime import date

from collectors.batches import Rows
from collectors.source import Batch, Settings
from models.raw import NOTICES

MENDS = {
    "absurd_instant": "A time before 2000, after 2100 or after it was seen: check the clock.",
    "absurd_quantity": "Too much or too little to be true: check the source and its unit.",
    "bad_column_value": "Not as the mapping says; a clock time that came twice or never is none.",
    "bad_event_time": "A component's time that cannot be: the next best one was used.",
    "bad_gpu_instance": "GPU_I_ID is no number: check what relabels the exporter's series.",
    "bad_hami_entry": "An annotation of HAMi that is cut off: record the object again.",
    "bad_instant": "Not an RFC 3339 instant: record with the API server's own times.",
    "bad_json": "The line is no JSON, perhaps cut off: record it again or delete it.",
    "bad_observed_at": "The line needs observed_at, an instant with its offset.",
    "bad_quantity": "Not a quantity as Kubernetes writes it: check the source.",
    "bad_submission_time": "An annotation that is neither RFC 3339 nor epoch seconds.",
    "conflicting_reading": "Two series tell one device's value differently: one was used.",
    "conflicting_sample": "One series has two values at one time: the first was used.",
    "duplicate_line": "The same line twice: recorders overlapped; one was used.",
    "duplicate_name": "Two nodes of one name at once, which pods go by: make it unique.",
    "duplicate_sample": "The same sample twice: replicas behind one address; one was used.",
    "duplicate_uid": "A pod or node that the table has already: make its id unique.",
    "file_broken": "The file ends in the middle: copy it again; what was readable was used.",
    "instant_without_zone": "A time without an offset: write it with Z or +02:00.",
    "label_on_several_nodes": "One pod on several nodes at once: set honorLabels as doctor says.",
    "malformed": "Not shaped as this kind of object is: record with `kubectl get -o json`.",
    "metric_missing": "kube-state-metrics has more: let Prometheus keep this metric too.",
    "not_a_number": "NaN was stored: check the exporter.",
    "negative_duration": "It ends before it begins: check the trace's times.",
    "native_histogram": "Not used: the metrics that are read are plain numbers.",
    "negative_quantity": "A quantity below 0: check the source.",
    "negative_reading": "A reading below 0: check the exporter.",
    "no_created_name": "The audit log lacks the name: log creations at level RequestResponse.",
    "no_creation": "metadata.creationTimestamp is missing: record whole objects.",
    "no_gpu_uuid": "The label UUID is missing: do not drop it where the exporter is scraped.",
    "no_name": "The name is missing: record whole objects.",
    "no_namespace": "metadata.namespace is missing: record whole objects.",
    "no_uid": "metadata.uid is missing: record whole objects.",
    "other_file": "Neither a list nor a watch stream of Kubernetes objects: it was not read.",
    "out_of_range": "More than can be true, mostly another field's value: no reading.",
    "outside_window": "A time outside the window that the mapping states.",
    "placed_before_created": "It was placed before it was created: check the trace's times.",
    "resource_claims": "No ResourceClaim was recorded, so what pods hold by them is not counted.",
    "sentinel": "DCGM's word for no value, as a number: no reading; newer exporters leave it out.",
    "unknown_column": "The mapping does not use this column: add it if it matters.",
    "unknown_device_class": "Taken for no GPU until one is allocated: else list it (accelerators).",
    "unknown_driver": "Its devices are no GPUs unless slices show it: else list it (accelerators).",
    "unknown_kind": "Not used: no figure needs objects of this kind.",
    "unknown_mig_profile": "Not in the catalogue: its share was taken from its name.",
    "unknown_resource": "It looks like an accelerator: list it under accelerators if it is one.",
    "unknown_scheduling_text": "Words of a scheduler that we do not know: kept, as reason other.",
    "unknown_type": "Not one of LISTED, ADDED, MODIFIED, DELETED, BOOKMARK, ERROR.",
}


class Rejections:
    """Counts by (day, place, reason), and the first example of each."""

    def __init__(self, settings: Settings):
        self.settings = settings
        self.counts: dict[tuple[date, str, str], int] = {}
        self.examples: dict[tuple[date, str, str], str] = {}

    def add(self, day: date, place: str, reason: str, example: str, times: int = 1) -> None:
        """One more that was refused or set aside."""
        key = (day, place, reason)
        self.counts[key] = self.counts.get(key, 0) + times
        self.examples.setdefault(key, example[:200])

    def take(self, other: "Rejections") -> None:
        """What was refused elsewhere."""
        for (day, place, reason), number in other.counts.items():
            self.add(day, place, reason, other.examples[day, place, reason], number)

    def batches(self) -> Iterator[Batch]:
        """All of them as rows."""
        rows = Rows("raw.rejections")
        for (day, place, reason), number in sorted(self.counts.items()):
            rows.add(
                {
                    "cluster_name": self.settings.cluster,
                    "day_on": day,
                    "source_ref": place,
                    "reason_name": reason,
                    "is_row_lost": reason not in NOTICES,
                    "rejected_count": number,
                    "example_text": self.examples[day, place, reason],
                    "mend_text": MENDS.get(reason, "Check the source."),
                }
            )
            yield from rows.full()
        yield from rows.rest()
