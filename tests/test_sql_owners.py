"""Whose a pod is by recorded owners: the top-level object, its class, its user, its team."""

import pytest

from models import raw
from tests.kueue_case import owner, owners
from tests.sql_case import Case


def whose(case):
    return case.ask(
        "select pod_uid, workload_kind_name, workload_key_uid, workload_class, is_service"
        " from core.pods order by 1"
    )


def bare(case, name="a", above="Job/j", **told):
    kind, key = above.split("/")
    case.pod(name, seen=10, created_at=10, namespace_name="x", owners=owners(above), **{
        "workload_kind_name": kind, "workload_name": key, "workload_key_uid": key,
        "workload_class": "batch", **told,
    })  # fmt: skip


def test_the_chain_is_walked_by_uid_to_the_top_without_any_label():
    case = Case()
    owner(case, "TrainJob", "t", workload_key_uid="TrainJob/x/t")
    owner(case, "JobSet", "s", above="TrainJob/t", workload_key_uid="TrainJob/x/t")
    owner(case, "Job", "j", above="JobSet/s")
    bare(case)
    assert whose(case) == [("a", "TrainJob", "TrainJob/x/t", "training", False)]
    [(chain, depth)] = case.ask(
        "select list_transform(owners, lambda o: o.object_name), depth_count"
        " from core.owners where object_uid = 'j'"
    )
    assert (chain, depth) == (["j", "s", "t"], 2)
    assert case.ask("select count(*) from core.workloads") == [(1,)]


def test_an_owner_that_was_deleted_before_still_leads_to_the_top():
    case = Case()
    for change in ("ADDED", "DELETED"):
        owner(case, "TrainJob", "t", change_name=change, observed_at=5)
        owner(case, "JobSet", "s", above="TrainJob/t", change_name=change, observed_at=5)
        owner(case, "Job", "j", above="JobSet/s", change_name=change, observed_at=5)
    bare(case)
    assert whose(case) == [("a", "TrainJob", "t", "training", False)]


def test_a_chain_that_breaks_off_falls_back_to_what_labels_name_above_it():
    """The ReplicaSet's owner was not recorded, and is not what the labels say is above."""
    case = Case()
    owner(case, "ReplicaSet", "rs", above="Revision/r", workload_class="inference",
          is_service=True)  # fmt: skip
    case.pod("a", namespace_name="x", owners=owners("ReplicaSet/rs", "InferenceService/i"),
             workload_kind_name="InferenceService", workload_name="i", is_service=True,
             workload_key_uid="InferenceService/x/i", workload_class="inference")  # fmt: skip
    found = [("a", "InferenceService", "InferenceService/x/i", "inference", True)]
    assert whose(case) == found


def test_a_chain_that_breaks_off_above_the_labels_goes_as_far_as_it_tells():
    """The TrainJob itself may not be read; its JobSet names it."""
    case = Case()
    owner(case, "JobSet", "s", above="TrainJob/t", workload_key_uid="TrainJob/x/t")
    owner(case, "Job", "j", above="JobSet/s")
    case.pod("a", namespace_name="x", owners=owners("Job/j", "JobSet/s"),
             workload_kind_name="JobSet", workload_name="s", workload_key_uid="s",
             workload_class="training")  # fmt: skip
    assert whose(case) == [("a", "TrainJob", "TrainJob/x/t", "training", False)]
    assert case.ask("select is_top_recorded from core.owners where kind_name = 'Job'") == [(False,)]


def test_pods_whose_owners_are_not_recorded_are_what_their_labels_say():
    case = Case()
    bare(case, above="StatefulSet/db", is_service=True, workload_class="interactive")
    assert whose(case) == [("a", "StatefulSet", "db", "interactive", True)]


def test_a_cron_job_s_jobs_are_workloads_of_their_own_and_it_stays_in_their_chain():
    case = Case()
    owner(case, "Job", "j", above="CronJob/c", workload_kind_name="Job", workload_name="j",
          workload_key_uid="j", workload_class="batch")  # fmt: skip
    bare(case)
    case.add(raw.TEAM_RULES, rule_number=1, condition_number=1, condition_count=1,
             field_name="owner_name", pattern_text="c", team_text="nightly")  # fmt: skip
    assert whose(case) == [("a", "Job", "j", "batch", False)]
    assert case.ask("select team_name from core.pods") == [("nightly",)]


def test_owners_that_own_each_other_end_somewhere():
    case = Case()
    owner(case, "Job", "j", above="JobSet/s")
    owner(case, "JobSet", "s", above="Job/j")
    bare(case)
    assert len(whose(case)) == 1


def test_a_gang_s_size_is_that_of_the_highest_owner_that_has_one():
    case = Case()
    owner(case, "JobSet", "s", gang_size_count=6, gang_source_name="JobSet replicatedJobs")
    owner(case, "Job", "j", above="JobSet/s", gang_size_count=3,
          gang_source_name="Indexed Job (assumed)")  # fmt: skip
    bare(case)
    found = case.ask("select gang_size_count, gang_source_name from core.pods")
    assert found == [(6, "JobSet replicatedJobs")]


def created(case, kind, name, user, seen: float = 0, **told):
    case.add(raw.OBJECT_CREATIONS, audit_id=f"{kind}{name}{seen}", kind_name=kind,
             namespace_name="x", object_name=name, user_name=user, verb_name="create",
             **{"created_at": seen, "answered_at": seen + 0.2, **told})  # fmt: skip


def users(case):
    [pods] = case.ask("select list(distinct user_name) from core.pods")
    [workloads] = case.ask("select list(distinct user_name) from core.workloads")
    return pods[0], workloads[0]


def test_the_user_is_the_creator_of_the_top_object_and_team_rules_see_them():
    case = Case()
    owner(case, "JobSet", "s", created_at=3)
    owner(case, "Job", "j", above="JobSet/s", created_at=4)
    created(case, "JobSet", "s", "ana", 3.4)
    bare(case)
    case.add(raw.TEAM_RULES, rule_number=1, condition_number=1, condition_count=1,
             field_name="user", pattern_text="ana", team_text="vision")  # fmt: skip
    assert users(case) == (["ana"], ["ana"])
    assert case.ask("select team_name from core.pods") == [("vision",)]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, "bo"),
        ({"object_uid": "j"}, "bo"),
        ({"object_uid": "other"}, None),
        ({"created_at": 900, "answered_at": 901}, None),
        ({"created_at": -900, "answered_at": -899}, None),
    ],
)
def test_a_creation_is_an_object_s_by_its_uid_else_by_its_name_and_time(told, expected):
    """A name is used again: the object before or after it is somebody else's."""
    case = Case()
    owner(case, "Job", "j", created_at=3)
    created(case, "Job", "j", "bo", 3.4, **told)
    bare(case)
    assert users(case) == ([expected], [expected])


def test_an_annotation_says_it_before_the_audit_log_does():
    case = Case()
    owner(case, "Job", "j", created_at=3, user_name="chen")
    created(case, "Job", "j", "portal", 3.4)
    bare(case)
    assert users(case) == (["chen"], ["chen"])


def test_without_recorded_owners_the_creator_is_found_by_the_workload_s_name():
    case = Case()
    created(case, "Job", "j", "dina", 9)
    created(case, "Job", "j", "later", 20)
    bare(case)
    assert users(case) == (["dina"], ["dina"])
