"""The configuration as tables: teams, rules, prices, inventory, settings.

What a key may say belongs to `config`; what follows from these rows to `sql/core`.
"""

from collections.abc import Iterable
from math import floor
from typing import Any

import polars as pl

from models import activity, mig, raw, xids
from models.config import Config
from models.gpus import canonical, catalogue
from models.pricing import Figure, Price, figures, micro, plain, stamp
from models.table import Table


def frames(config: Config) -> dict[str, pl.DataFrame]:
    """The global raw tables, name -> rows, each as its contract says."""
    return {
        table.name: frame(table, rows)
        for table, rows in (
            (raw.TEAMS, _teams(config)),
            (raw.TEAM_RULES, _team_rules(config)),
            (raw.PRICES, _prices(config)),
            (raw.FLEET, _fleet(config)),
            (raw.POLICIES, _policies(config)),
            (activity.ACTIVITY_RULES, activity.rows(config.activity_rules)),
            (raw.GPU_MODELS, _gpu_models()),
            (raw.MIG_PROFILES, mig_profiles()),
            (xids.XIDS, xids.rows()),
        )
    }


def frame(table: Table, rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    """Rows as a frame that keeps the table's contract."""
    return table.conform(pl.DataFrame(list(rows), schema=table.schema, orient="row"))


def _teams(config: Config) -> Iterable[dict[str, Any]]:
    for team in config.teams:
        yield {
            "team_name": team.name,
            "parent_team_name": team.parent,
            "cost_centre_name": team.cost_centre,
            "contacts_text": ",".join(team.contacts) or None,
        }


def _team_rules(config: Config) -> Iterable[dict[str, Any]]:
    for number, rule in enumerate(config.team_rules, 1):
        conditions = rule.conditions()
        for place, condition in enumerate(conditions, 1):
            yield {
                "rule_number": number,
                "condition_number": place,
                "condition_count": len(conditions),
                "field_name": condition.field,
                "key_name": condition.key,
                "pattern_text": condition.pattern,
                "team_text": rule.team,
                "valid_from_at": rule.valid_from and config.instant(rule.valid_from),
                "valid_to_at": rule.valid_to and config.instant(rule.valid_to),
            }


def _prices(config: Config) -> Iterable[dict[str, Any]]:
    zone, currency = config.lake.accounting_zone, config.lake.currency
    for price in config.prices:
        label = next(iter((price.node_label or {}).items()), (None, None))
        begin = config.instant(price.valid_from)
        for figure in figures(price, config.rates, currency, zone):
            is_later = figure.applies_from > begin
            yield {
                "price_id": price.id(zone)
                + (f" at the rate of {stamp(figure.applies_from, zone)}" if is_later else ""),
                "valid_from_at": begin,
                "applies_from_at": figure.applies_from,
                "rank_number": price.rank,
                "cluster_name": price.cluster,
                "node_name": price.node,
                "label_key_name": label[0],
                "label_value_text": label[1],
                "gpu_model_name": price.model,
                "capacity_type_name": price.capacity_type,
                "price_micro_cost_per_gpu_hour": micro(figure.exact),
                "derivation_text": plain(_derivation(price, figure, currency)),
            }


def _derivation(price: Price, figure: Figure, currency: str) -> str:
    whole, rest = divmod(micro(figure.exact), 1_000_000)
    rounded = f"{whole}.{rest:06d} {currency} per GPU-hour"
    found = price.owned.derivation() if price.owned else f"{price.exact():f}"
    if figure.rate:
        return f"{found} {figure.rate.currency} x {figure.rate.rate:f} = {rounded}"
    return f"{found} = {rounded}" if price.owned else f"as listed: {rounded}"


def _fleet(config: Config) -> Iterable[dict[str, Any]]:
    for row in config.fleet:
        yield {
            "cluster_name": row.cluster,
            "gpu_model_name": canonical(row.gpu_model),
            "gpu_count": row.count,
            "begin_at": config.instant(row.begins),
            "end_at": row.ends and config.instant(row.ends),
        }


def _policies(config: Config) -> Iterable[dict[str, Any]]:
    for name, value in config.policies:
        yield {"policy_name": name, "value_number": value}


def _gpu_models() -> Iterable[dict[str, Any]]:
    for gpu in catalogue().values():
        yield {
            "gpu_model_name": gpu.gpu_model_name,
            "memory_mib": gpu.memory_mib,
            "limit_watts": gpu.tdp_watts,
            "bare_watts": gpu.rest_bare_watts,
            "context_watts": gpu.rest_context_watts,
        }


def mig_profiles() -> Iterable[dict[str, Any]]:
    """What each profile is of its GPU, as rows."""
    for model, profile, part in mig.parts():
        yield {
            "gpu_model_name": model,
            "mig_profile_name": profile,
            "share_micro_gpu": floor(part.share * 1_000_000),
        }
