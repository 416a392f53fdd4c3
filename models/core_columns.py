"""Columns that several core tables share; each table's own columns stand with it."""

from models.states import CAUSES, CLASSES, STATES
from models.table import Column, Kind

BEGIN = Column("begin_at", Kind.INSTANT, "Begin, included.")
END = Column("end_at", Kind.INSTANT, "End, excluded.")
SPAN = (("begin_at", "end_at"),)
NODE = Column("node_uid", Kind.TEXT, "The node, or a reserved one in double underscores.")
MODEL = Column("gpu_model_name", Kind.TEXT, "Canonical GPU model, or __unknown__.")
HOLD = Column("hold_id", Kind.TEXT, "The hold: pod uid / resource [/ device], or / device / claim.")
WORKLOAD = Column("workload_key_uid", Kind.TEXT, "The workload's uid, else kind/namespace/name.")
TEAM = Column("team_name", Kind.TEXT, "Who pays, or __unattributed__.")
HOLDER = Column("team_name", Kind.TEXT, "The holder: a team, or a reserved one.")
STATE = Column("state_name", Kind.TEXT, "State.", choices=tuple(STATES))
CAUSE = Column("cause_name", Kind.TEXT, "Cause within the state.", choices=(*CAUSES,))
SHARE = Column("share_micro_gpu", Kind.COUNT, "Share of GPUs, in millionths.", minimum=0)
GPU_SECONDS = Column("gpu_seconds", Kind.DECIMAL, "GPU-seconds.", minimum=0)
CLASS = Column("workload_class", Kind.TEXT, "What sort of work it is.", choices=CLASSES)
ATTEMPT = Column("attempt_id", Kind.TEXT, "The attempt: workload, and when its first pod came.")
PRICE = Column("price_id", Kind.TEXT, "The price row in force; null where none is.", nullable=True)
QUOTA_WORKLOAD = Column(
    "workload_uid", Kind.TEXT, "The Kueue Workload that queues it, if one does.", nullable=True
)
QUOTA_ATTEMPT = Column(
    "attempt_number", Kind.COUNT, "That Workload's attempt, counted from 1.", nullable=True
)
