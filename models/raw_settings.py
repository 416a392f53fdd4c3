"""Global raw tables: what the configuration says, whole, not by day.

What a source observed belongs in `raw`; what a key may say in `config`.
"""

from models.table import CLUSTER, Column, Kind, Table

TEAMS = Table(
    name="raw.teams",
    doc="The teams of the configuration: who pays.",
    grain=("team_name",),
    is_daily=False,
    columns=(
        Column("team_name", Kind.TEXT, "The team."),
        Column("parent_team_name", Kind.TEXT, "The team above it.", nullable=True),
        Column("cost_centre_name", Kind.TEXT, "Where it is booked.", nullable=True),
        Column("contacts_text", Kind.TEXT, "Whom to write to, comma-separated.", nullable=True),
    ),
)

TEAM_RULES = Table(
    name="raw.team_rules",
    doc="The team rules of the configuration, in order; a rule's conditions must all match.",
    grain=("rule_number", "condition_number"),
    is_daily=False,
    columns=(
        Column("rule_number", Kind.COUNT, "Its place: the first match wins.", minimum=1),
        Column("condition_number", Kind.COUNT, "Condition within the rule.", minimum=1),
        Column("condition_count", Kind.COUNT, "Conditions that the rule has.", minimum=1),
        Column(
            "field_name",
            Kind.TEXT,
            "What it looks at.",
            choices=(
                "pod_label",
                "owner_name",
                "namespace_label",
                "namespace",
                "queue",
                "account",
                "user",
            ),
        ),
        Column("key_name", Kind.TEXT, "The label's key, for labels.", nullable=True),
        Column("pattern_text", Kind.TEXT, "Glob that the value must match."),
        Column("team_text", Kind.TEXT, "The team, or {value} for the value matched."),
        Column("valid_from_at", Kind.INSTANT, "Binds before it are not touched.", nullable=True),
        Column("valid_to_at", Kind.INSTANT, "Binds from it on are not touched.", nullable=True),
    ),
)

PRICES = Table(
    name="raw.prices",
    doc="The price book: rows are added, never edited.",
    grain=("price_id",),
    is_daily=False,
    columns=(
        Column("price_id", Kind.TEXT, "Its key: what it covers and since when."),
        Column("valid_from_at", Kind.INSTANT, "In force from here until a later one of its kind."),
        Column("applies_from_at", Kind.INSTANT, "This figure of it: since then, or a later rate."),
        Column(
            "rank_number",
            Kind.COUNT,
            "5 node, 4 label, 3 cluster/model/type, 2 model, 1 *.",
            minimum=1,
            maximum=5,
        ),
        Column("cluster_name", Kind.TEXT, "For this cluster only.", nullable=True),
        Column("node_name", Kind.TEXT, "For this node only.", nullable=True),
        Column("label_key_name", Kind.TEXT, "For nodes with this label.", nullable=True),
        Column("label_value_text", Kind.TEXT, "Its value.", nullable=True),
        Column("gpu_model_name", Kind.TEXT, "Canonical model, or null for any.", nullable=True),
        Column("capacity_type_name", Kind.TEXT, "on-demand, reserved, spot, owned.", nullable=True),
        Column(
            "price_micro_cost_per_gpu_hour",
            Kind.COUNT,
            "In the accounting currency, in millionths.",
            minimum=0,
        ),
        Column("derivation_text", Kind.TEXT, "How the price came about."),
    ),
)

FLEET = Table(
    name="raw.fleet",
    doc="The inventory of the configuration: GPUs that are owned or paid for, seen or not.",
    grain=("cluster_name", "gpu_model_name", "begin_at"),
    is_daily=False,
    columns=(
        CLUSTER,
        Column("gpu_model_name", Kind.TEXT, "Canonical GPU model."),
        Column("gpu_count", Kind.COUNT, "How many.", minimum=0),
        Column("begin_at", Kind.INSTANT, "From."),
        Column("end_at", Kind.INSTANT, "To.", nullable=True),
    ),
)

POLICIES = Table(
    name="raw.policies",
    doc="The settings of the configuration that a query needs.",
    grain=("policy_name",),
    is_daily=False,
    columns=(
        Column("policy_name", Kind.TEXT, "The setting, its unit in its name."),
        Column("value_number", Kind.COUNT, "Its value."),
    ),
)

GPU_MODELS = Table(
    name="raw.gpu_models",
    doc="The GPU catalogue: memory, limit and rest power of each model, null where not known.",
    grain=("gpu_model_name",),
    is_daily=False,
    columns=(
        Column("gpu_model_name", Kind.TEXT, "Canonical GPU model."),
        Column("memory_mib", Kind.COUNT, "Memory.", minimum=0),
        Column("limit_watts", Kind.COUNT, "Default power limit.", nullable=True, minimum=0),
        Column("bare_watts", Kind.COUNT, "At rest, no context.", nullable=True, minimum=0),
        Column("context_watts", Kind.COUNT, "At rest with a context.", nullable=True, minimum=0),
    ),
)

MIG_PROFILES = Table(
    name="raw.mig_profiles",
    doc="Which part of its GPU an instance of each MIG profile is.",
    grain=("gpu_model_name", "mig_profile_name"),
    is_daily=False,
    columns=(
        Column("gpu_model_name", Kind.TEXT, "Canonical GPU model; *: any that has no own row."),
        Column(
            "mig_profile_name", Kind.TEXT, "The profile, such as 1g.10gb, 1c.3g.40gb; of any: 3g.*."
        ),
        Column("share_micro_gpu", Kind.COUNT, "Its share.", minimum=1, maximum=1_000_000),
    ),
)
