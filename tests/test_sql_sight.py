"""What was read of the sources, what of each quantity, and what was refused, as the marts tell it.

Why a quantity is not told is tested with the marts of GPUs.
"""

from models import raw, raw_metrics
from tests.sql_case import HOUR, MIDNIGHT, Case


def test_a_stretch_that_could_not_be_read_keeps_its_length_and_its_reason():
    case = Case()
    case.add(raw_metrics.METRIC_COVERAGE, source_ref="p", family_name="dcgm", begin_at=0,
             end_at=3600, read_name="missing", reason_text="503", try_count=4)  # fmt: skip
    assert case.ask(
        "select read_name, stretch_seconds, reason_text, try_count from mart.metric_reads"
    ) == [("missing", 3600, "503", 4)]


def test_refusals_are_summed_over_their_places_and_the_worst_place_is_named_with_its_example():
    case = Case()
    for place, count in (("a", 2), ("b", 5), ("c", 1)):
        case.add(raw.REJECTIONS, source_ref=place, reason_name="bad_json", is_row_lost=True,
                 rejected_count=count, example_text=f"of {place}", mend_text="mend")  # fmt: skip
    assert case.ask(
        "select rejected_count, place_count, source_ref, example_text from mart.refusals"
    ) == [(8, 3, "b", "of b")]


def test_a_notice_is_not_added_to_what_was_lost():
    case = Case()
    for is_lost, count in ((True, 2), (False, 7)):
        case.add(raw.REJECTIONS, source_ref=str(is_lost), reason_name="x", is_row_lost=is_lost,
                 rejected_count=count)  # fmt: skip
    assert case.ask(
        "select is_row_lost, rejected_count from mart.refusals order by is_row_lost"
    ) == [(False, 7), (True, 2)]


def test_a_broken_gpu_is_told_with_its_node_and_what_says_so():
    """XID 79 is told from 600 on: broken from the sample before it, and not mended."""
    case = Case()
    case.node("n")
    case.add(raw.XIDS, xid_number=79, kind_name="fatal", meaning_text="off the bus")
    gpu = {"node_name": "n", "gpu_uuid": "GPU-1", "instance_number": -1}
    case.add(raw_metrics.GPU_SERIES, **gpu, exporter_name="e", begin_at=0, end_at=3600,
             sample_count=121, gpu_number=0, gpu_model_name="t4")  # fmt: skip
    for second in range(0, 3601, 30):
        case.add(raw_metrics.GPU_SAMPLES, **gpu, sampled_at=second,
                 xid_number=79 if second >= 600 else 0, utilisation_ratio=0)  # fmt: skip
    assert case.ask(
        "select node_name, gpu_uuid, xid_number, basis_name, is_ended from mart.gpu_faults"
    ) == [("n", "GPU-1", 79, "xid", False)]


def test_each_quantity_is_told_from_its_first_to_its_last_reading():
    """All are read at each half minute, each of them for another ten minutes of the hour."""
    case = Case()
    case.node("n")
    gpu = {"node_name": "n", "gpu_uuid": "g", "instance_number": -1}
    names = [
        name for (name,) in case.ask("select metric_name from mart.metric_sight") if name != "any"
    ]
    assert len(names) == 13
    case.add(raw_metrics.GPU_SERIES, **gpu, exporter_name="e", begin_at=0, end_at=HOUR,
             sample_count=121, gpu_model_name="t4", metrics_text="")  # fmt: skip
    for second in range(0, HOUR + 1, 30):
        told = {n: 1 for place, n in enumerate(names) if 0 <= second - 180 * place <= 600}
        case.add(raw_metrics.GPU_SAMPLES, **gpu, sampled_at=second, **told)
    zero = int(MIDNIGHT.timestamp())
    found = case.ask(
        f"select metric_name, told_seconds, epoch(first_told_at)::int - {zero}, "
        f"epoch(last_told_at)::int - {zero} from mart.metric_sight"
    )
    expected = {(n, 630, 180 * place, 180 * place + 600) for place, n in enumerate(names)}
    assert set(found) == expected | {("any", HOUR, 0, HOUR)}
