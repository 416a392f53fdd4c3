"""Random claims, devices and pods: the holds are those of a plain count, and the laws hold."""

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.dra_case import DraCase, gpu, mig
from tests.dra_case import given as device

TICK = 300
TICKS = 12
DEVICES = {
    "gpu-0": ("GPU-0", 1_000_000),
    "m1": ("GPU-1", 571_428),
    "m2": ("GPU-1", 500_000),
    "m3": ("GPU-1", 142_857),
}


class Pod(NamedTuple):
    """When it is bound and when it ends, in ticks."""

    bound: int
    end: int


class Claim(NamedTuple):
    """Its devices, the pods that it is reserved for, and when it is given back."""

    devices: frozenset[str]
    pods: frozenset[int]
    release: int


TIMES = st.integers(0, TICKS)
PODS = st.lists(st.builds(Pod, TIMES, TIMES).filter(lambda p: p.bound < p.end), min_size=3,
                max_size=3)  # fmt: skip
CLAIMS = st.lists(
    st.builds(
        Claim,
        st.frozensets(st.sampled_from(sorted(DEVICES)), min_size=1),
        st.frozensets(st.integers(0, 2)),
        st.integers(1, TICKS),
    ),
    min_size=1,
    max_size=3,
)


def counted(pods: list[Pod], claims: list[Claim]) -> dict[tuple[int, int, str, int], int]:
    """(tick, pod, device, claim) -> share, as the rules say it."""
    found = {}
    for tick in range(TICKS):
        split = {}
        for number, claim in enumerate(claims):
            there = [p for p in claim.pods if pods[p].bound <= tick < pods[p].end]
            if tick < claim.release:
                for name in claim.devices:
                    for pod in there:
                        split[pod, name, number] = DEVICES[name][1] // len(there)
        for key, share in split.items():
            card = DEVICES[key[1]][0]
            total = sum(s for (_, name, _), s in split.items() if DEVICES[name][0] == card)
            found[tick, *key] = share * 1_000_000 // total if total > 1_000_000 else share
    return found


def built(pods: list[Pod], claims: list[Claim]) -> DraCase:
    case = DraCase(TICK * TICKS)
    case.bare_node()
    shares = {name: share for name, (_, share) in DEVICES.items()}
    case.slice([gpu(), *(mig(n, n, shares[n], parent=1) for n in shares if n != "gpu-0")])
    for number, claim in enumerate(claims):
        told = {"claim_uid": f"c{number}", "claim_name": str(number)}
        uses = "".join(str(p) for p in sorted(claim.pods))
        case.claim(0, [device(name) for name in sorted(claim.devices)], uses, **told)
        if claim.release < TICKS:
            case.claim(claim.release * TICK, [], "", **told)
    for number, pod in enumerate(pods):
        named = "".join(str(c) for c, claim in enumerate(claims) if number in claim.pods)
        case.claiming(str(number), pod.bound * TICK, named)
        if pod.end < TICKS:
            end = pod.end * TICK
            case.claiming(str(number), pod.bound * TICK, named, phase_name="Succeeded",
                          finished_at=end, seen=end)  # fmt: skip
    return case


@settings(max_examples=8, deadline=None)
@given(pods=PODS, claims=CLAIMS)
def test_the_holds_of_claims_are_those_of_a_plain_count(pods, claims):
    case = built(pods, claims)
    rows = case.ask(
        "select h.pod_uid::int, split_part(h.hold_id, '/', 4), right(h.claim_uid, 1)::int, "
        "s.share_micro_gpu, epoch(s.begin_at)::bigint % 86400, "
        "date_diff('second', s.begin_at, s.end_at) "
        "from core.hold_shares as s inner join core.holds as h on s.hold_id = h.hold_id"
    )
    found = {}
    for pod, name, claim, share, begin, seconds in rows:
        for tick in range(begin // TICK, (begin + seconds) // TICK):
            assert (tick, pod, name, claim) not in found
            found[tick, pod, name, claim] = share
    assert found == counted(pods, claims)
    assert case.broken() == []
