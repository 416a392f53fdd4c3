"""The words that people read in place of the ledger's own: states, causes, reserved holders.

The closed sets themselves are in models.states; how a figure is written is in `figures`.
"""

from models.states import RESERVED, ROUNDING, UNALLOCATED, UNATTRIBUTED, UNAVAILABLE, UNKNOWN

STATES = {
    "active": "measured doing work",
    "loading": "started, not yet ready or not yet at work",
    "starting": "held, containers not all running yet",
    "gang_wait": "held and started, waiting for the rest of its gang",
    "stalled": "kernels reported, no work done",
    "idle": "running and measured doing nothing",
    "terminating": "past its end, still holding the GPU",
    "unobserved": "held and running, but nothing measures it",
    "unallocated": "schedulable, held by nobody",
    "unavailable": "installed, not usable",
    "unrecorded": "installed, no record of who held it",
    "rounding": "what rounding the money leaves over",
}
"""State -> what it means, in the order in which they are stacked."""

HOLDERS = {
    UNALLOCATED: "nobody: free to schedule",
    UNAVAILABLE: "nobody: not usable",
    UNKNOWN: "not recorded",
    UNATTRIBUTED: "held, but no team rule matches",
    ROUNDING: "rounding of the money",
}

NAMES = {
    UNATTRIBUTED: "no team found",
    UNKNOWN: "not known",
    "__none__": "no queue",
}
"""Reserved names -> what a table shows in their place; its CSV keeps the ledger's own."""

LIKELY_CAUSES = {
    "never_worked": "no activity since its containers run",
    "waiting_for_peers": "the other members of its job are gone or stuck",
    "waiting_for_input": "it reads or prepares data",
    "no_requests": "it serves, and nobody asks",
    "work_ended": "the work has ended, the pod has not",
    "interactive": "a session that nobody uses just now",
    "broken": "the GPU or its node has a fault",
    "unknown": "nothing tells why",
}
"""Likely cause of an idle GPU -> what it says."""

FINDINGS = {
    "over_sized": "asks for more GPUs than it uses",
    "nvlink_silent": "NVLink is silent, PCIe carries its traffic",
    "used_without_hold": "works, and nobody holds it",
    "label_disagrees": "exporter and Kubernetes name different pods",
    "more_gpus_than_installed": "more GPUs measured than installed",
}

WRONG = {"gang_partial": "partial gang", "hold_on_gone_node": "hold on a gone node"}
"""Finding of a workload -> its words, where its own name is none."""

WASTE = "starting + gang wait + stalled + idle + terminating"


def word(name: str) -> str:
    """A state, a cause or a finding in plain letters; 'none' is a state without causes."""
    return "–" if name == "none" else WRONG.get(name, name.replace("_", " "))


def is_team(name: str) -> bool:
    """Whether a holder is a team, and not one of the reserved ones."""
    return name not in RESERVED
