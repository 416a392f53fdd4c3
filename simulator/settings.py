"""The configuration that goes with a simulated fleet: teams, team rules, prices, policies.

How rules and prices apply belongs to `truth_money` and `truth_teams`.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

Config = dict[str, Any]


def load(config: Path | None, clusters: list[str], begin: int, days: int) -> Config:
    """The given configuration, or our own, with the recorded clusters as its clusters."""
    told = yaml.safe_load(config.read_text()) if config else default(begin, days)
    told["clusters"] = [
        {"name": name, "sources": [{"kind": "kubernetes", "path": f"recorded/{name}"}]}
        for name in clusters
    ]
    if not config:
        priced = {*clusters, None}
        told["prices"] = [row for row in told["prices"] if row.get("cluster") in priced]
    return told


def measure(told: Config, names: list[str]) -> None:
    """Let the configuration read what a Prometheus has of some clusters."""
    for cluster in told["clusters"]:
        if cluster["name"] in names:
            path = f"prometheus/{cluster['name']}"
            cluster["sources"].append({"kind": "prometheus", "path": path})


def dump(told: Config) -> str:
    """The configuration as YAML."""
    return yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=100)


def _at(second: float) -> datetime:
    return datetime.fromtimestamp(int(second), tz=UTC)


def default(begin: int, days: int) -> Config:
    """Our own: a price that changes in mid-hour, one that comes late, a rule with a date."""
    span = days * 86400
    change = begin + int(span * 0.45) // 3600 * 3600 + 30 * 60 + 17
    late = begin + int(span * 0.2) // 3600 * 3600 + 1234
    rule = begin + int(span * 0.5) // 86400 * 86400
    old = _at(begin - 320 * 86400)
    team = "cost.example.com/team"
    return {
        "lake": {"accounting_zone": "UTC", "currency": "USD"},
        "clusters": [],
        "teams": [
            {
                "name": "science",
                "cost_centre": "4700",
                "contacts": ["science-leads@example.com"],
            },
            {
                "name": "research",
                "parent": "science",
                "cost_centre": "4711",
                "contacts": ["research-leads@example.com"],
            },
            {"name": "vision", "parent": "science", "cost_centre": "4712"},
            {"name": "robotics", "cost_centre": "4720"},
            {"name": "product", "cost_centre": "5100", "contacts": ["product@example.com"]},
            {"name": "platform", "cost_centre": "9000"},
        ],
        "team_rules": [
            {"team": "{value}", "pod_label": {team: "*"}},
            {
                "team": "vision",
                "namespace": "vision",
                "namespace_label": {"example.com/tier": "gold"},
            },
            {"team": "{value}", "namespace_label": {team: "*"}},
            {"team": "robotics", "queue": "robotics"},
            {"team": "science", "namespace": "science-*", "valid_from": _at(rule)},
        ],
        "prices": [
            {"valid_from": _at(late), "gpu_model": "*", "per_gpu_hour": "0.65"},
            {"valid_from": old, "gpu_model": "h100-80gb", "per_gpu_hour": "3.90"},
            {"valid_from": _at(change), "gpu_model": "h100-80gb", "per_gpu_hour": "3.571429"},
            {"valid_from": old, "gpu_model": "h200-141gb", "per_gpu_hour": "4.85"},
            {"valid_from": old, "gpu_model": "a100-80gb", "per_gpu_hour": "2.40"},
            {"valid_from": old, "gpu_model": "a100-40gb", "per_gpu_hour": "1.75"},
            {"valid_from": old, "gpu_model": "l40s", "per_gpu_hour": "1.10"},
            {"valid_from": old, "gpu_model": "a30-24gb", "per_gpu_hour": "0.83"},
            {"valid_from": old, "gpu_model": "v100-32gb", "per_gpu_hour": "0.55"},
            {
                "valid_from": old,
                "cluster": "beta",
                "gpu_model": "h100-80gb",
                "capacity_type": "spot",
                "per_gpu_hour": "1.60",
            },
            {
                "valid_from": old,
                "node_label": {"example.com/pool-owner": "owned"},
                "owned": {
                    "capex": "239000",
                    "residual": "20000",
                    "years": 5,
                    "gpus": 8,
                    "draw_watts": 10000,
                    "pue": "1.3",
                    "tariff_per_kwh": "0.10",
                    "opex_per_month": "730",
                },
            },
        ],
        "annotations": {
            "user": ["example.com/submitted-by"],
            "submitted_at": ["example.com/submitted-at"],
        },
        "labels": {"capacity_type": ["karpenter.sh/capacity-type"]},
        "workload_classes": [
            {"class": "interactive", "namespace": "notebooks-*"},
            {"class": "inference", "namespace": "serving-*"},
        ],
        "policies": {"provisional_days": 3, "loading_max_seconds": 1800},
    }
