"""The truth of teams and classes: whose a hold is, by the rules in order, as known at its bind.

What a hold is belongs to `truth_states`.
"""

from fnmatch import fnmatchcase
from zoneinfo import ZoneInfo

from simulator.settings import Config
from simulator.truth_facts import Facts
from simulator.truth_money import instant
from simulator.world import World

CONDITIONS = ("pod_label", "owner_name", "namespace_label", "namespace", "queue", "account", "user")


def team(pod: Facts, world: World, told: Config) -> str:
    """The team of a pod's holds: the first rule whose conditions all match."""
    zone = ZoneInfo(told.get("lake", {}).get("accounting_zone", "UTC"))
    for rule in told.get("team_rules", []):
        bound = pod.bound or 0
        if "valid_from" in rule and bound < instant(rule["valid_from"], zone):
            continue
        if "valid_to" in rule and bound >= instant(rule["valid_to"], zone):
            continue
        value = _match(rule, pod, world, told)
        if value is not None:
            return rule["team"].replace("{value}", value)
    return "__unattributed__"


def _match(rule: Config, pod: Facts, world: World, told: Config) -> str | None:
    """The value that the last condition found, or none if one does not match."""
    value = ""
    for field in CONDITIONS:
        if field not in rule:
            continue
        wanted = rule[field]
        pairs = wanted.items() if isinstance(wanted, dict) else [("", wanted)]
        for key, pattern in pairs:
            found = _value(field, key, pod, world, told)
            if found is None or not fnmatchcase(found, str(pattern)):
                return None
            value = found
    return value


def _value(field: str, key: str, pod: Facts, world: World, told: Config) -> str | None:
    match field:
        case "pod_label":
            return pod.pod.labels.get(key)
        case "namespace":
            return pod.pod.namespace
        case "namespace_label":
            known = world.namespaces[pod.pod.namespace].versions
            seen = pod.pod.seen.placed or 0
            labels = [found for when, found in known if when <= seen]
            return labels[-1].get(key) if labels else None
        case "queue":
            return pod.queue or None
        case "owner_name":
            return pod.pod.owner.name if pod.pod.owner else None
        case "user":
            keys = told.get("annotations", {}).get("user", [])
            return next((pod.pod.annotations[k] for k in keys if k in pod.pod.annotations), None)
        case _:
            return None


def workload_class(pod: Facts, told: Config) -> str:
    """The class of a pod's workload: the first override that matches, else by kind."""
    for rule in told.get("workload_classes", []):
        if "namespace" in rule and fnmatchcase(pod.pod.namespace, rule["namespace"]):
            return rule["class"]
    return pod.workload_class
