"""What a GPU did by its samples alone, with the rules for idle and stalled in their simplest form.

It is there to show that the simulator's truth can be found in the simulator's metrics; how the
product finds it belongs to the product.
"""

from collections import defaultdict

from tests.measured import Series

READ = {"SM": "sm", "GR": "gr", "TE": "tensor", "DR": "dram", "GP": "util", "BO": "power"}
LEAST = {"idle": 300, "stalled": 600}


def states(series: list[Series]) -> dict[tuple[str, str], list[tuple[float, float, str]]]:
    """States by the rules, from the samples alone, in the simplest way."""
    read: dict = defaultdict(lambda: defaultdict(dict))
    for one in series:
        short = one.name.upper().removeprefix("DCGM_FI_").removeprefix("DEV_")
        short = short.removeprefix("PROF_").removeprefix("PIPE_").replace("POWER_U", "BOARD")
        key = READ.get(short[:2])
        if not key or "_CLOCK" in one.name or "_TEMP" in one.name or "pod_uid" in one.labels:
            continue
        gpu = (one.labels.get("UUID") or one.labels["uuid"], one.labels.get("GPU_I_ID", "-1"))
        for time, value in zip(one.times, one.values, strict=True):
            if value <= 100 or (key == "power" and value < 2000):
                read[gpu][time][key] = value
    found = {}
    for gpu, samples in read.items():
        parts: list[tuple[float, float, str]] = []
        last = 0.0
        for time in sorted(samples):
            at = samples[time]
            begin, last = last if time - last <= 60 else time - 30, time
            activity = at.get("sm", at.get("gr", at.get("util")))
            if activity is None:
                continue
            is_still = at.get("tensor", 0) <= 0.02 and at.get("dram", 0) <= 0.02
            is_stalled = at.get("util", 0) >= 95 and is_still and at.get("power", 999) < 160
            state = "stalled" if is_stalled else "active" if activity > 0.01 else "idle"
            if parts and parts[-1][1:] == (begin, state):
                begin = parts.pop()[0]
            parts.append((begin, time, state))
        found[gpu] = [(b, e, s if e - b >= LEAST.get(s, 0) else "active") for b, e, s in parts]
    return found
