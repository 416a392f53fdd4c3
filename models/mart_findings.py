"""Marts of findings of workloads: what went wrong, whose GPUs stood by, and what that cost.

What is found, and the seconds of each pod, are in core_findings; GPUs' findings in mart_gpus.
"""

from models.core_columns import GPU_SECONDS, SPAN, TEAM
from models.core_findings import FINDING, KEY, OPEN, SINCE, SUBJECT
from models.core_uses import money
from models.table import CLUSTER, DAY, Column, Kind, Table

MEMBER_STATES = (
    "running",
    "starting",
    "pending",
    "succeeded",
    "lost",
    "terminating",
    "pulling",
    "crash_looping",
)
UNPRICED = Column("unpriced_gpu_seconds", Kind.DECIMAL, "Of them without a price.", minimum=0)
BESIDE = Column(
    "beside_gpu_seconds",
    Kind.DECIMAL,
    "GPU-seconds beside the ledger, which nobody pays: of holds on a node that is gone, of quota "
    "that no pod uses.",
    minimum=0,
)

WORKLOAD_FINDINGS = Table(
    name="mart.workload_findings",
    doc="What went wrong with workloads on a day while it held GPUs up, and what that cost.",
    grain=KEY,
    scope="team_name",
    columns=(
        CLUSTER,
        DAY,
        FINDING,
        SUBJECT,
        TEAM,
        SINCE,
        Column("begin_at", Kind.INSTANT, "From, in the day."),
        Column("end_at", Kind.INSTANT, "To."),
        OPEN,
        Column("workload_key_uid", Kind.TEXT, "The workload, if it is one's.", nullable=True),
        Column("namespace_name", Kind.TEXT, "Its namespace.", nullable=True),
        Column("workload_name", Kind.TEXT, "Its name.", nullable=True),
        Column("deadlock_id", Kind.TEXT, "The same for all gangs of a deadlock.", nullable=True),
        Column("member_count", Kind.COUNT, "Pods in mart.finding_members.", minimum=0),
        Column("missing_count", Kind.COUNT, "Members that the gang lacks.", nullable=True),
        GPU_SECONDS,
        UNPRICED,
        money("finding", "The ledger's cost of these GPU-seconds."),
        BESIDE,
        Column("is_certain", Kind.FLAG, "Else suspected."),
        Column("evidence_text", Kind.TEXT, "What, since when, who holds what, what is missing."),
    ),
    ranges=SPAN,
)

FINDING_MEMBERS = Table(
    name="mart.finding_members",
    doc="The pods that a finding is about: what each holds where, and what it costs meanwhile.",
    grain=(*KEY, "pod_uid"),
    scope="team_name",
    columns=(
        CLUSTER,
        DAY,
        FINDING,
        SUBJECT,
        TEAM,
        SINCE,
        Column("pod_uid", Kind.TEXT, "The pod."),
        Column("namespace_name", Kind.TEXT, "Its namespace."),
        Column("pod_name", Kind.TEXT, "Its name."),
        Column("node_uid", Kind.TEXT, "The node that it is on.", nullable=True),
        Column("node_name", Kind.TEXT, "That node's name.", nullable=True),
        Column("asked_micro_gpu", Kind.COUNT, "GPU share that it asks for.", minimum=0),
        Column(
            "member_state_name",
            Kind.TEXT,
            "What it does at the finding's end.",
            choices=MEMBER_STATES,
        ),
        Column("state_since_at", Kind.INSTANT, "Since when."),
        GPU_SECONDS,
        UNPRICED,
        money("member", "The ledger's cost of these GPU-seconds."),
        BESIDE,
    ),
)

TABLES = (WORKLOAD_FINDINGS, FINDING_MEMBERS)
