"""Core tables of findings: gangs that stall, deadlocks, and whose seconds each finding is about.

What a finding costs, and its words, are in mart_findings.
"""

from models.core_columns import ATTEMPT, BEGIN, END, SPAN, TEAM
from models.table import CLUSTER, DAY, Column, Kind, Table

FINDINGS = {
    "gang_partial": "a gang holds GPUs, and not all of it is placed",
    "gang_deadlock": "gangs hold what the others need to be complete",
    "gang_livelock": "a gang begins again and again, and is never complete",
    "member_lost": "a complete gang lost a member, and the others stand",
    "rendezvous_wait": "members that run wait for the others to start",
    "slow_image_pull": "GPUs are held while an image is pulled",
    "crash_loop": "containers that crash again and again hold GPUs",
    "stuck_terminating": "a pod holds GPUs long after its deletion was asked for",
    "hold_on_gone_node": "pods are still there on a node that is not",
    "stale_reservation": "quota is kept with no pod left to use it",
}
"""The closed set of findings, and what each means."""

FINDING = Column("finding_name", Kind.TEXT, "What.", choices=tuple(FINDINGS))
SUBJECT = Column(
    "subject_text",
    Kind.TEXT,
    "Of what: an attempt, the gang that begins again, a pod, an image on a node, a node, or what "
    "keeps quota.",
)
SINCE = Column("since_at", Kind.INSTANT, "Since when, also days before, as far as known.")
KEY = ("cluster_name", "day_on", "finding_name", "subject_text", "team_name", "since_at")
"""What tells one finding of a day from another."""
OPEN = Column("is_open", Kind.FLAG, "It is still so at the end of what is known.")

GANG_STALLS = Table(
    name="core.gang_stalls",
    doc="Stretches in which a gang that was never complete in its attempt holds GPUs.",
    grain=("cluster_name", "day_on", "attempt_id", "stall_name", "since_at"),
    columns=(
        CLUSTER,
        DAY,
        ATTEMPT,
        Column(
            "stall_name",
            Kind.TEXT,
            "start: some members hold GPUs; partial: and not all are placed; stuck: and of those "
            "that are not, some wait for a place.",
            choices=("start", "partial", "stuck"),
        ),
        SINCE,
        BEGIN,
        END,
        OPEN,
        Column("gang_size_count", Kind.COUNT, "Members that start together.", minimum=2),
        Column("most_bound_count", Kind.COUNT, "Most that were placed, or had succeeded."),
    ),
    ranges=SPAN,
)

PLACE = Column("place_id", Kind.TEXT, "All nodes that will do, as one text.")
NEEDS = Column("needs_id", Kind.TEXT, "What missing members need of a node, as one text.")

STUCK_GANGS = Table(
    name="core.stuck_gangs",
    doc="Gangs that long hold GPUs while others of them wait for a place, and what those need.",
    grain=("cluster_name", "day_on", "attempt_id", "since_at"),
    columns=(
        CLUSTER,
        DAY,
        ATTEMPT,
        SINCE,
        BEGIN,
        END,
        OPEN,
        Column("gang_size_count", Kind.COUNT, "Members that start together.", minimum=2),
        Column("asked_micro_gpu", Kind.COUNT, "GPU share that a member asks for.", minimum=1),
        NEEDS,
        Column("node_needs_json", Kind.TEXT, "The labels, as pods tell them.", nullable=True),
        Column("resource_name", Kind.TEXT, "The resource; null: a claim.", nullable=True),
        Column(
            "gpu_model_name",
            Kind.TEXT,
            "The model asked for; where nothing tells what is needed, that of the other members.",
            nullable=True,
        ),
    ),
    ranges=SPAN,
)

GANG_PLACES = Table(
    name="core.gang_places",
    doc="The nodes that the missing members of stuck gangs could use; "
    "who could use the same waits at one place.",
    grain=("cluster_name", "day_on", "needs_id", "node_uid"),
    columns=(
        CLUSTER,
        DAY,
        NEEDS,
        Column("node_uid", Kind.TEXT, "A node that will do."),
        PLACE,
    ),
)

GANG_QUEUES = Table(
    name="core.gang_queues",
    doc="Gangs that wait at one place at once: what each misses there, holds, and could have.",
    grain=("cluster_name", "day_on", "attempt_id", "moment_at"),
    columns=(
        CLUSTER,
        DAY,
        ATTEMPT,
        PLACE,
        Column("moment_at", Kind.INSTANT, "From, also before the day."),
        Column("next_at", Kind.INSTANT, "Until when nothing of it changes."),
        OPEN,
        Column("node_count", Kind.COUNT, "Nodes of the place.", minimum=0),
        Column("is_certain", Kind.FLAG, "Which nodes will do is told; else guessed."),
        Column("missing_micro_gpu", Kind.COUNT, "What its missing members ask for."),
        Column(
            "room_micro_gpu",
            Kind.COUNT,
            "What is there for it besides what these gangs and services hold.",
            minimum=0,
        ),
        Column("held_micro_gpu", Kind.COUNT, "What it holds there.", minimum=0),
    ),
    ranges=(("moment_at", "next_at"),),
)

GANG_DEADLOCKS = Table(
    name="core.gang_deadlocks",
    doc="Stretches in which gangs cannot be complete unless another of them gives up its GPUs.",
    grain=("cluster_name", "day_on", "attempt_id", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        ATTEMPT,
        Column("deadlock_id", Kind.TEXT, "The deadlock: the same for all gangs in it."),
        SINCE,
        BEGIN,
        END,
        OPEN,
        Column("node_count", Kind.COUNT, "Nodes that its missing members could use.", minimum=0),
        Column("is_certain", Kind.FLAG, "Which nodes they could use is known; else suspected."),
    ),
    ranges=SPAN,
)

GANG_FINDINGS = Table(
    name="core.gang_findings",
    doc="What went wrong with gangs, from when to when; whose seconds: core.finding_spans.",
    grain=KEY,
    columns=(
        CLUSTER,
        DAY,
        FINDING,
        SUBJECT,
        TEAM,
        SINCE,
        BEGIN,
        END,
        OPEN,
        Column("attempt_ids_text", Kind.TEXT, "The attempts, by line."),
        Column("deadlock_id", Kind.TEXT, "The deadlock that it is of, if any.", nullable=True),
        Column("gang_size_count", Kind.COUNT, "Members that start together.", minimum=2),
        Column("start_count", Kind.COUNT, "Starts that were given up.", nullable=True),
        Column("is_certain", Kind.FLAG, "Else suspected."),
    ),
    ranges=SPAN,
)

FINDING_SPANS = Table(
    name="core.finding_spans",
    doc="The seconds of each pod that a finding is about: those of all GPUs that it then holds.",
    grain=(*KEY, "pod_uid", "begin_at"),
    columns=(
        CLUSTER,
        DAY,
        FINDING,
        SUBJECT,
        TEAM,
        SINCE,
        Column("pod_uid", Kind.TEXT, "The pod."),
        BEGIN,
        END,
        Column(
            "cause_name",
            Kind.TEXT,
            "Only what the ledger has of this cause; null: all.",
            nullable=True,
            choices=("member_lost", "crash_loop"),
        ),
        OPEN,
    ),
    ranges=SPAN,
)

TABLES = (
    GANG_STALLS,
    STUCK_GANGS,
    GANG_PLACES,
    GANG_QUEUES,
    GANG_DEADLOCKS,
    GANG_FINDINGS,
    FINDING_SPANS,
)
