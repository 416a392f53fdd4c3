"""Whose reading it is: the workload, the exporter's own pod, the node and the device, by labels."""

import pytest

from collectors.dcgm import parse
from tests.exposition import BEGIN, SETTINGS, fetched, refused, rows

GPU = 'gpu="0",UUID="GPU-0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"'
EXPORTER = 'pod="dcgm-exporter-x7k2p",namespace="gpu-operator",container="nvidia-dcgm-exporter"'
ODD = 'pod="telemetry-x7k2p",namespace="ops",container="agent"'
MINE = 'exported_pod="job-1",exported_namespace="ml",exported_container="main"'


def owners(*labels: str) -> list[tuple[str, str, str]]:
    """Whose the series with these labels are, in the order of their GPUs' index."""
    lines = [f"DCGM_FI_DEV_GPU_UTIL{{{each}}} 1" for each in labels]
    found = rows(parse(fetched("\n".join(lines)), SETTINGS), "raw.gpu_series")
    found.sort(key=lambda row: row["gpu_number"])
    return [(r["pod_namespace_name"], r["pod_name"], r["container_name"]) for r in found]


def other(index: int, host: str = "n1") -> str:
    return f'gpu="{index}",UUID="GPU-{host}-{index}",Hostname="{host}",instance="{host}:9400"'


NOBODY = ("", "", "")
JOB = ("ml", "job-1", "main")


def test_under_honor_labels_false_the_workload_is_the_exported_pod():
    assert owners(f"{GPU},{EXPORTER},{MINE}") == [JOB]


def test_under_honor_labels_false_an_idle_gpu_is_not_the_exporter_s():
    assert owners(f"{GPU},{EXPORTER}") == [NOBODY]


def test_three_pods_on_one_gpu_are_three_owners_of_one_device():
    mine = [MINE.replace("job-1", name) for name in ("pod1", "pod2", "pod3")]
    text = "\n".join(f"DCGM_FI_DEV_GPU_TEMP{{{GPU},{EXPORTER},{each}}} 40" for each in mine)
    parsed = parse(fetched(text), SETTINGS)
    assert [r["pod_name"] for r in rows(parsed, "raw.gpu_series")] == ["pod1", "pod2", "pod3"]
    assert {r["pod_namespace_name"] for r in rows(parsed, "raw.gpu_series")} == {"ml"}
    [row] = rows(parsed, "raw.gpu_samples")
    assert row["temperature_celsius"] == 40


def test_under_honor_labels_true_pod_is_the_workload_and_on_an_idle_gpu_the_exporter():
    workload = 'pod="job-1",namespace="ml",container="main"'
    assert owners(f"{GPU},{workload}", f"{other(1)},{EXPORTER}") == [JOB, NOBODY]


def test_a_scrape_by_annotation_has_no_pod_on_an_idle_gpu():
    target = 'job="kubernetes-pods",kubernetes_pod_name="dcgm-exporter-x7k2p"'
    workload = 'pod="job-1",namespace="ml",container="main"'
    assert owners(f"{GPU},{target},{workload}", f"{other(1)},{target}") == [JOB, NOBODY]


def test_an_exporter_of_any_name_is_known_by_the_pods_that_it_names_beside_itself():
    assert owners(f"{GPU},{ODD},{MINE}", f"{other(1)},{ODD}") == [JOB, NOBODY]


def test_an_exporter_of_any_name_is_known_by_its_service():
    assert owners(f'{GPU},{ODD},service="telemetry"') == [NOBODY]
    # What a word ends in is no suffix of a DaemonSet's.
    train = 'pod="telemetry-train",namespace="ml",container="main",service="telemetry"'
    assert owners(f"{GPU},{train}") == [("ml", "telemetry-train", "main")]


def test_an_exporter_of_any_name_is_known_where_the_host_is_called_like_it():
    label = 'gpu="0",UUID="GPU-0",Hostname="telemetry-x7k2p"'
    assert owners(f"{label},{ODD}") == [NOBODY]


def test_a_pod_that_would_be_on_several_nodes_at_once_is_no_workload():
    proxy = 'pod="proxy-0",namespace="ops",container="proxy"'
    assert owners(f"{other(0, 'n1')},{proxy}", f"{other(0, 'n2')},{proxy}") == [NOBODY, NOBODY]


def test_pods_of_one_name_in_two_namespaces_are_two_workloads():
    first = 'pod="worker-0",namespace="a",container="main"'
    second = 'pod="worker-0",namespace="b",container="main"'
    found = owners(f"{other(0, 'n1')},{first}", f"{other(0, 'n2')},{second}")
    assert found == [("a", "worker-0", "main"), ("b", "worker-0", "main")]


def test_a_pod_that_moved_to_another_node_is_a_workload_on_both():
    workload = 'pod="train-0",namespace="ml",container="main"'
    text = f"""
        DCGM_FI_DEV_GPU_UTIL{{{other(0, "n1")},{workload}}} 1 {BEGIN + 30_000}
        DCGM_FI_DEV_GPU_UTIL{{{other(0, "n2")},{workload}}} 1 {BEGIN + 90_000}
    """
    found = rows(parse(fetched(text), SETTINGS), "raw.gpu_series")
    assert [(r["node_name"], r["pod_name"]) for r in found] == [
        ("n1", "train-0"),
        ("n2", "train-0"),
    ]


def stints(*told: tuple[str, int, int], pod: str = "train-0") -> str:
    """Samples each half minute of GPU 0 of nodes from one minute to another, all under a pod."""
    workload = f'pod="{pod}",namespace="ml",container="main"'
    return "\n".join(
        f"DCGM_FI_DEV_GPU_UTIL{{{other(0, host)},{workload}}} 1 {BEGIN + time * 1000}"
        for host, begin, end in told
        for time in range(60 * begin + 1, 60 * end, 30)
    )


def test_a_pod_of_one_name_that_comes_back_to_its_first_node_is_a_workload_on_both():
    parsed = parse(fetched(stints(("n1", 0, 10), ("n2", 10, 40), ("n1", 40, 60))), SETTINGS)
    found = rows(parsed, "raw.gpu_series")
    assert [(r["node_name"], r["pod_name"], r["sample_count"]) for r in found] == [
        ("n1", "train-0", 60),
        ("n2", "train-0", 60),
    ]
    assert not rows(parsed, "raw.rejections")


def test_a_label_that_hangs_on_for_a_sample_does_not_put_a_pod_on_two_nodes():
    hanging = f"{stints(('n1', 0, 10))}\n{stints(('n2', 9, 20)).partition(chr(10))[2]}"
    found = rows(parse(fetched(hanging), SETTINGS), "raw.gpu_series")
    assert [r["pod_name"] for r in found] == ["train-0", "train-0"]


def test_a_name_on_two_nodes_at_once_is_nobody_s_and_that_is_told():
    text = stints(("n1", 0, 30), ("n2", 20, 60))
    parsed = parse(fetched(text), SETTINGS)
    assert {r["pod_name"] for r in rows(parsed, "raw.gpu_series")} == {""}
    [told] = rows(parsed, "raw.rejections")
    assert (told["reason_name"], told["rejected_count"]) == ("label_on_several_nodes", 140)
    assert told["source_ref"].startswith('{pod="train-0"}[')
    assert told["example_text"] == "train-0 of namespace ml on 2 GPUs, of n1, n2"
    assert not told["is_row_lost"] and "honorLabels" in told["mend_text"]


def test_a_relabelling_that_copies_the_workload_into_pod_hides_no_one():
    copied = 'pod="job-1",namespace="ml",container="main"'
    assert owners(f"{GPU},{copied},{MINE}") == [JOB]


def test_a_second_hop_adds_a_prefix_and_the_deepest_is_the_workload():
    hop = 'pod="prometheus-0",namespace="monitoring",container="prometheus"'
    first = EXPORTER.replace("pod=", "exported_pod=").replace("namespace=", "exported_namespace=")
    first = first.replace("container=", "exported_container=")
    second = MINE.replace("exported_", "exported_exported_")
    assert owners(f"{GPU},{hop},{first},{second}", f"{other(1)},{hop},{first}") == [JOB, NOBODY]


def test_label_names_of_old_are_read_too():
    old = 'gpu="3",uuid="GPU-3",modelName="A100",GPU_I_ID="1",GPU_I_PROFILE="4g.40gb"'
    text = f"""
        dcgm_fi_prof_gr_engine_active{{{old},pod_name="job-1",pod_namespace="ml",container_name="main",
            {EXPORTER}}} 0.5
        dcgm_fi_prof_gr_engine_active{{{old},pod_name="",pod_namespace="",container_name="",
            {EXPORTER}}} 0.5 {BEGIN + 60_000}
    """.replace(",\n", ",")
    parsed = parse(fetched(text), SETTINGS)
    found = rows(parsed, "raw.gpu_series")
    assert [(r["pod_name"], r["pod_namespace_name"]) for r in found] == [("", ""), ("job-1", "ml")]
    assert {(r["gpu_uuid"], r["instance_number"]) for r in found} == {("GPU-3", 1)}
    assert all(r["source_ref"].startswith('{uuid="GPU-3"}[3600000ms] @ ') for r in found)
    assert [r["gr_engine_ratio"] for r in rows(parsed, "raw.gpu_samples")] == [0.5, 0.5]


def test_an_empty_label_is_an_absent_one():
    # MIG just after a pod began: active, and no label yet. Its owner is not known: nobody's name.
    told = 'container="",namespace="",pod="",GPU_I_ID="1",GPU_I_PROFILE="2g.12gb"'
    label = f'gpu="0",UUID="GPU-0",modelName="NVIDIA A30",Hostname="dcgm-exporter-sn5rp",{told}'
    parsed = parse(fetched(f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{label}}} 0.381124"), SETTINGS)
    [row] = rows(parsed, "raw.gpu_series")
    assert (row["pod_namespace_name"], row["pod_name"], row["pod_uid"]) == NOBODY
    assert row["mig_profile_name"] == "2g.12gb" and row["instance_number"] == 1
    [sample] = rows(parsed, "raw.gpu_samples")
    assert sample["gr_engine_ratio"] == 0.381124


def test_an_empty_pod_uid_is_no_pod_s():
    told = 'container="vllm",namespace="inference",pod="qwen-0",pod_uid=""'
    [row] = rows(
        parse(fetched(f"DCGM_FI_DEV_GPU_UTIL{{{GPU},{told}}} 0"), SETTINGS), "raw.gpu_series"
    )
    assert (row["pod_name"], row["pod_uid"]) == ("qwen-0", "")


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ('Hostname="n1"', "n1"),
        ('hostname="n1"', "n1"),
        ('hostname="target",exported_hostname="n1"', "n1"),
        ('Hostname="dcgm-exporter-sn5rp"', "dcgm-exporter-sn5rp"),
        ('Hostname="dcgm-exporter-sn5rp",node="n1"', "n1"),
        (f'Hostname="telemetry-x7k2p",node="n1",{ODD}', "n1"),
        ('Hostname="localhost"', "localhost"),
        ('Hostname="localhost",node="n1"', "n1"),
        ('Hostname="n1",node="n2"', "n1"),
        ('node="n1"', "n1"),
        ("", "__unknown__"),
    ],
)
def test_the_node_is_the_host_unless_that_is_the_exporter(labels, node):
    text = f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-0",{labels}}} 1'
    [row] = rows(parse(fetched(text), SETTINGS), "raw.gpu_samples")
    assert row["node_name"] == node


def test_claims_and_jobs_are_told_and_several_of_them_once():
    claim = 'dra_claim_name="c1",dra_claim_namespace="ml",dra_mig_profile="1g.12gb"'
    text = f"""
        DCGM_FI_DEV_GPU_UTIL{{{GPU},hpc_job="7",{claim}}} 40
        DCGM_FI_DEV_GPU_UTIL{{{GPU},hpc_job="12",{claim}}} 40
    """
    parsed = parse(fetched(text), SETTINGS)
    [row] = rows(parsed, "raw.gpu_series")
    assert (row["hpc_job_name"], row["claim_name"]) == ("12,7", "ml/c1")
    assert row["sample_count"] == 1
    assert (parsed.counts.reading, parsed.counts.copy) == (1, 1)


def test_a_driver_upgrade_makes_other_series_of_the_same_gpu():
    text = f"""
        DCGM_FI_DEV_GPU_UTIL{{{GPU},DCGM_FI_DRIVER_VERSION="580.95.05"}} 40 {BEGIN + 30_000}
        DCGM_FI_DEV_GPU_UTIL{{{GPU},DCGM_FI_SYSTEM_DRIVER_VERSION="580.105.08"}} 50 {BEGIN + 90_000}
    """
    parsed = parse(fetched(text), SETTINGS)
    told = [r["driver_version_text"] for r in rows(parsed, "raw.gpu_series")]
    assert told == ["580.105.08", "580.95.05"]
    assert [r["utilisation_ratio"] for r in rows(parsed, "raw.gpu_samples")] == [0.4, 0.5]


def test_a_series_that_names_no_gpu_is_refused_with_the_way_to_mend_it():
    text = """
        DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="n1"} 40
        DCGM_FI_DEV_GPU_UTIL{UUID="GPU-0",GPU_I_ID="x",Hostname="n1"} 40
        DCGM_FI_PROF_SM_ACTIVE{UUID="<<<NULL>>>",Hostname="n1"} 1
    """
    parsed = parse(fetched(text), SETTINGS)
    assert refused(parsed) == {
        ("DCGM_FI_DEV_GPU_UTIL", "no_gpu_uuid"): 1,
        ("DCGM_FI_DEV_GPU_UTIL", "bad_gpu_instance"): 1,
        ("DCGM_FI_PROF_SM_ACTIVE", "no_gpu_uuid"): 1,
    }
    assert parsed.counts.rejected == 3
    assert not rows(parsed, "raw.gpu_samples") and not rows(parsed, "raw.gpu_series")
    assert all(
        "UUID" in r["mend_text"] or "GPU_I_ID" in r["mend_text"]
        for r in rows(parsed, "raw.rejections")
    )


def test_a_row_of_labels_says_when_with_what_and_in_which_words():
    text = f"""
        DCGM_FI_DEV_GPU_UTIL{{{GPU},{EXPORTER},{MINE},instance="10.0.0.1:9400"}} 1 {BEGIN + 30_000}
        DCGM_FI_DEV_GPU_UTIL{{{GPU},{EXPORTER},{MINE},instance="10.0.0.1:9400"}} 1 {BEGIN + 60_000}
        DCGM_FI_DEV_FB_USED{{{GPU},{EXPORTER},{MINE},instance="10.0.0.1:9400"}} 1 {BEGIN + 60_000}
    """
    [row] = rows(parse(fetched(text), SETTINGS), "raw.gpu_series")
    assert row["metrics_text"] == "utilisation_ratio,memory_used_mib"
    assert row["sample_count"] == 2 and (row["end_at"] - row["begin_at"]).seconds == 30
    assert row["exporter_name"] == "10.0.0.1:9400"
    assert (row["gpu_model_name"], row["gpu_number"]) == ("h100-80gb", 0)
    assert row["gpu_product_name"] == "NVIDIA H100 80GB HBM3"
