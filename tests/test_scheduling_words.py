"""What schedulers' texts say: each wording, by the verdict that a careful reader comes to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.scheduling_words import COMBINED, Reason, reasons
from models.raw_events import REASONS, SECTIONS
from models.table import Kind

GPU = "nvidia.com/gpu"
SELECTOR = "node(s) didn't match Pod's node affinity/selector"


def counted(text, section="scheduling"):
    """Reason (with its resource or taint) -> nodes, of one section."""
    return {
        (r.reason_name, r.resource_name or r.taint_text): r.node_count
        for r in reasons(text)
        if r.section_name == section
    }


def only(text) -> Reason:
    [reason] = reasons(text)
    return reason


BOTH = f"0/3 nodes are available: 1 {SELECTOR}, 2 Insufficient {GPU}."
USELESS = "1 Preemption is not helpful for scheduling, 2 No preemption victims found for it."


@pytest.mark.parametrize(
    "between", ["preemption: ", "no new claims to deallocate, preemption: ", "a, b, preemption: "]
)
def test_what_preemption_would_do_is_kept_apart_from_the_reasons(between):
    text = f"{BOTH} {between}0/3 nodes are available: {USELESS}"
    assert counted(text) == {("affinity", None): 1, ("resource_short", GPU): 2}
    assert counted(text, "preemption") == {
        ("preemption_useless", None): 1,
        ("no_victims", None): 2,
    }
    assert {r.total_node_count for r in reasons(text)} == {3}


def test_preemption_may_be_out_of_the_question():
    text = f"{BOTH} still not schedulable, preemption: not eligible due to a terminating pod on n."
    assert counted(text, "preemption") == {("preemption_not_eligible", None): None}


def test_a_node_may_have_several_reasons_so_counts_may_exceed_the_nodes():
    text = "0/10 nodes are available: 10 node(s) didn't match node selector, 4 Insufficient cpu."
    assert counted(text) == {("affinity", None): 10, ("resource_short", "cpu"): 4}


def test_a_pod_that_asks_for_gpus_may_lack_something_else():
    text = (
        "0/41 nodes are available: 2 Insufficient pods, 35 Insufficient cpu, 4 Insufficient memory."
    )
    assert counted(text) == {
        ("too_many_pods", None): 2,
        ("resource_short", "cpu"): 35,
        ("resource_short", "memory"): 4,
    }


@pytest.mark.parametrize("how", ["", " (it wouldn't fit if a new node is added)"])
def test_an_autoscaler_speaks_of_its_own_nodes(how):
    text = f"pod didn't trigger scale-up{how}: 1 Insufficient {GPU}, 3 {SELECTOR}"
    assert counted(text) == {}
    assert counted(text, "scale_up") == {("resource_short", GPU): 1, ("affinity", None): 3}


def test_a_reason_may_have_colons_and_numbers_of_its_own():
    odd = "Pod is waiting for a free resource to appear: have to use one bad node 1/x.x in VC main"
    text = f"0/2 nodes are available: 1 Insufficient memory, 1 {odd}, 1 {SELECTOR}."
    [_, bad, _] = reasons(text)
    assert (bad.reason_name, bad.reason_text, bad.node_count) == ("node_unfit", odd, 1)


def test_a_list_that_breaks_off_is_marked_and_its_tail_not_counted():
    taints = ", ".join(f"{n} node(s) had untolerated taint {{pool: p{n}}}" for n in (1, 10, 24))
    for end in (", 3 node(s) had", ", 3 node(s) had ...", ", 3 Insuffi ..."):
        *found, tail = reasons(f"0/216 nodes are available: {taints}{end}")
        assert sum(r.node_count or 0 for r in found) == 35
        assert [r.taint_text for r in found] == ["{pool: p1}", "{pool: p10}", "{pool: p24}"]
        assert (tail.reason_name, tail.node_count) == ("cut", None)
        assert all(r.is_cut for r in (*found, tail))


def test_a_whole_list_without_a_full_stop_is_not_cut():
    assert counted(BOTH[:-1]) == counted(BOTH)
    assert not any(r.is_cut for r in reasons(BOTH[:-1]))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("node(s) were unschedulable", "unschedulable"),
        ("node(s) had untolerated taint(s)", "taint"),
        ("node(s) had taint {a/b: }, that the pod didn't tolerate", "taint"),
        ("node(s) had taints that the pod didn't tolerate", "taint"),
        ("node(s) didn't match pod topology spread constraints", "topology_spread"),
        ("node(s) didn't match pod anti-affinity rules", "affinity"),
        ("node(s) had volume node affinity conflict", "volume"),
        ("node(s) did not have enough free storage", "volume"),
        ("node(s) didn't find available persistent volumes to bind", "volume"),
        ("node(s) didn't have free ports for the requested pod ports", "ports"),
        ("cannot allocate all claims", "claim"),
        ("Too many pods", "too_many_pods"),
        ("node(s) were not ready", "node_unfit"),
        ("node(s) sang out of tune", "other"),
    ],
)
def test_each_wording_has_its_word(text, reason):
    [found] = reasons(f"0/9 nodes are available: 7 {text}.")
    assert (found.reason_name, found.node_count, found.reason_text) == (reason, 7, text)


def test_the_oldest_grammar_counts_in_brackets():
    text = "No nodes are available that match all of the predicates: "
    assert counted(f"{text}Insufficient cpu (4), MatchNodeSelector (10).") == {
        ("resource_short", "cpu"): 4,
        ("affinity", None): 10,
    }


def test_a_text_without_counts_is_a_reason_of_all_nodes():
    found = only("0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims.")
    assert (found.reason_name, found.node_count, found.total_node_count) == ("volume", None, 4)
    assert only("no nodes available to schedule pods").reason_name == "no_nodes"


@pytest.mark.parametrize(
    ("parts", "missing"),
    [
        ("20 minAvailable, 8 Running", 12),
        ("3 Pending, 3 minAvailable", 3),
        ("1 Allocated, 3 Pipelined, 4 minAvailable", 3),
        ("6 Binding, 6 minAvailable", 0),
        ("10 minAvailable, 6 Pending", 10),
    ],
)
@pytest.mark.parametrize("whose", ["pod group", "job"])
def test_a_gang_lacks_members_whatever_its_two_first_numbers_are(parts, missing, whose):
    found = only(f"12/8 tasks in gang unschedulable: {whose} is not ready, {parts}.")
    assert (found.reason_name, found.missing_count) == ("gang", missing)
    assert (found.node_count, found.total_node_count) == (None, None)


def test_a_gang_says_which_member_met_which_nodes():
    inner = f"0/78 nodes are unavailable: 13 {SELECTOR}, 65 Insufficient {GPU}."
    parts = "pod group is not ready, 4 Pending, 4 minAvailable; Pending: 4 Unschedulable"
    for text in (
        f"4/4 tasks in gang unschedulable: {parts}. Origin reason is vj-1-worker-1: {inner}",
        f"{parts}. Origin reason is vj-1-worker-1: {inner}",
        f"PodGroup ml:vj-1 unschedulable, reason: 4/4 tasks in gang unschedulable: {parts}. "
        f"Origin reason is vj-1-worker-1: {inner}",
    ):
        assert counted(text) == {
            ("gang", None): None,
            ("affinity", None): 13,
            ("resource_short", GPU): 65,
        }


def test_unavailable_means_what_available_means():
    assert counted("0/1 nodes are unavailable: 1 Insufficient cpu.") == {
        ("resource_short", "cpu"): 1
    }
    assert counted("all nodes are unavailable: 2 Insufficient cpu.") == {
        ("resource_short", "cpu"): 2
    }


def test_a_member_for_which_a_node_is_found_waits_for_its_peers():
    assert only("Pod ml/w-0 can possibly be assigned to n1").reason_name == "placeable"


def test_a_full_queue_is_no_lack_of_nodes():
    assert only("resource in cluster is overused").reason_name == "quota_full"
    found = only(f"queue resource quota insufficient: insufficient {GPU}")
    assert (found.reason_name, found.resource_name) == ("quota_full", GPU)


NO_FLAVOR = "couldn't assign flavors to pod set"


def test_quota_in_use_is_told_from_a_request_that_can_never_fit():
    text = (
        f"{NO_FLAVOR} head: insufficient unused quota for {GPU} in flavor many, 8 more needed, "
        f"insufficient unused quota for {GPU} in flavor one, 8 more needed; "
        f"{NO_FLAVOR} work: insufficient quota for {GPU} in flavor many, "
        f"request > maximum capacity (16 > 8), insufficient quota for {GPU} in flavor one, "
        "previously considered podsets requests (0) + current podset request (24) > "
        "maximum capacity (16)"
    )
    assert [
        (r.pod_set_name, r.flavor_name, r.reason_name, r.missing_count) for r in reasons(text)
    ] == [
        ("head", "many", "quota_full", 8),
        ("head", "one", "quota_full", 8),
        ("work", "many", "quota_never", 8),
        ("work", "one", "quota_never", 8),
    ]


def test_what_a_queue_preempts_for_it_is_no_reason_of_its_own():
    text = (
        f"{NO_FLAVOR} main: flavor spot doesn't match node affinity, insufficient unused quota "
        "for cpu in flavor fixed, 500m more needed. Pending the preemption of 1 workload(s)"
    )
    found = [(r.section_name, r.reason_name, r.flavor_name, r.missing_count) for r in reasons(text)]
    assert found == [
        ("scheduling", "affinity", "spot", None),
        ("scheduling", "quota_full", "fixed", None),
        ("preemption", "preemption_pending", None, None),
    ]


def test_a_topology_that_is_too_full_says_on_how_many_nodes():
    text = (
        f'{NO_FLAVOR} main: topology "racks" allows to fit only 2 out of 3 pod(s). '
        f'Total nodes: 16; excluded: resource "{GPU}": 13, taint "a": 1'
    )
    [place, short, taint] = reasons(text)
    assert (place.reason_name, place.missing_count, place.total_node_count) == ("topology", 1, 16)
    assert (short.reason_name, short.resource_name, short.node_count) == ("resource_short", GPU, 13)
    assert (taint.reason_name, taint.taint_text, taint.node_count) == ("taint", "a", 1)


def test_similar_events_counted_together_read_as_the_latest_of_them():
    assert reasons(COMBINED + BOTH) == reasons(BOTH)


WORDS = st.sampled_from(
    """0/3 nodes are available: |0/9 nodes are unavailable|. preemption: |, |...|.
|2 Insufficient cpu|12/8 tasks in gang unschedulable: |Origin reason is x: |{|}|(|3 |taint
|4 minAvailable|(16 > 8)
|couldn't assign flavors to pod set a: |; | more needed|flavor f|pod group is not ready
|insufficient unused quota for g in flavor f, |topology "t" |pod didn't trigger scale-up
|Pending the preemption of 1 workload(s)|PodGroup a:b unschedulable, reason: |999999999999999999
|(combined from similar events): """.replace("\n", "").split("|")
)


@given(st.one_of(st.text(), st.lists(WORDS | st.text(max_size=5)).map("".join)))
def test_any_text_gives_reasons_and_none_is_lost(text):
    found = reasons(text)
    assert bool(found) == bool(text.removeprefix(COMBINED).strip())
    for reason in found:
        assert reason.reason_name in REASONS and reason.section_name in SECTIONS
        assert reason.reason_text
        numbers = (reason.node_count, reason.total_node_count, reason.missing_count)
        assert all(number is None or abs(number) < 2**62 for number in numbers)


@given(st.text(alphabet=st.characters(exclude_characters=",.0123456789 \n"), min_size=1))
def test_what_is_not_known_is_kept_word_by_word(word):
    text = f"0/3 nodes are available: 1 {word} zyx, 2 Insufficient cpu."
    assert [r.reason_text for r in reasons(text)] == [f"{word} zyx", "Insufficient cpu"]


def test_a_reason_has_the_columns_of_its_kind():
    fields = [field.name for field in Kind.REASONS.polars.inner.fields]  # type: ignore[attr]
    assert list(Reason._fields) == fields
