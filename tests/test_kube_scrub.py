"""What a recorder keeps of an object, and that no secret is among it, wherever it is planted."""

import string

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from collectors.kube_scrub import LOOKS_SECRET, WITHHELD, arguments, scrubbed, text
from tests.kube_objects import pod

PLANTED = "h7Wq2-Zr9_xK4.pLm8"


def container(**told):
    return {"name": "main", "image": "repo/train:1", **told}


def with_containers(*containers, **told):
    item = pod(**told)
    item["spec"]["containers"] = list(containers)
    return item


def kept(item) -> str:
    return orjson.dumps(scrubbed(item)).decode()


def test_values_of_variables_go_but_for_those_that_tell_how_a_job_talks():
    env = [
        {"name": "HF_TOKEN", "value": PLANTED},
        {"name": "PLAIN", "value": PLANTED},
        {"name": "MASTER_PASSWORD", "value": PLANTED},
        {"name": "NCCL_AUTH_TOKEN", "value": PLANTED},
        {"name": "NCCL_IB_DISABLE", "value": "1"},
        {"name": "PET_NNODES", "value": "4"},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "token"}}},
    ]
    item = scrubbed(with_containers(container(env=env)))
    assert item["spec"]["containers"][0]["env"] == [
        {"name": "HF_TOKEN", "value": WITHHELD},
        {"name": "PLAIN", "value": WITHHELD},
        {"name": "MASTER_PASSWORD", "value": WITHHELD},
        {"name": "NCCL_AUTH_TOKEN", "value": WITHHELD},
        {"name": "NCCL_IB_DISABLE", "value": "1"},
        {"name": "PET_NNODES", "value": "4"},
        env[-1],
    ]


def test_a_template_at_any_depth_is_treated_as_a_pod():
    inner = {"spec": {"containers": [container(env=[{"name": "A", "value": PLANTED}])]}}
    item = {
        "kind": "RayCluster",
        "metadata": {"name": "r", "uid": "u"},
        "spec": {"workerGroupSpecs": [{"template": inner}], "env": {"B": PLANTED}},
    }
    assert PLANTED not in kept(item)


YAML = """
pip: [torch]
env_vars:
  PLAIN: h7Wq2-Zr9_xK4.pLm8
  NCCL_DEBUG: INFO
working_dir: https://a/b.zip
"""
SERVE = """
applications:
  - name: llm
    runtime_env: {env_vars: {PLAIN: h7Wq2-Zr9_xK4.pLm8}}
    deployments:
      - ray_actor_options:
          runtime_env:
            env_vars: {"PLAIN": h7Wq2-Zr9_xK4.pLm8}
"""


@pytest.mark.parametrize(
    "told",
    [YAML, SERVE, YAML.replace("\n", "\r\n"), '{"spec": {"env": [{"name": "A", "value": "%s"}]}}',
     '"env_vars":\n  A: "%s"', "runtime_env: {env_vars: {A: %s}}", "env_vars: &a\n  A: %s",
     '{"inner": "{\\"env\\": {\\"A\\": \\"%s\\"}}"}', "8265: a port\nenv:\n  1: %s",
     """ray job submit --runtime-env-json='{"env_vars":{"A":"%s"}}' -- python train.py"""],
)  # fmt: skip
def test_variables_within_a_text_that_is_yaml_or_json_go_too(told):
    told = told.replace("%s", PLANTED)
    item = {
        "kind": "RayJob",
        "metadata": {"annotations": {"x": told}},
        "spec": {"runtimeEnvYAML": told},
    }
    item["spec"]["args"] = ["-c", told]
    assert PLANTED in orjson.dumps(item).decode()
    assert PLANTED not in kept(item)


def test_what_else_such_a_text_says_stays():
    item = scrubbed({"kind": "RayJob", "spec": {"runtimeEnvYAML": YAML}})
    assert yaml.safe_load(item["spec"]["runtimeEnvYAML"]) == {
        "pip": ["torch"],
        "env_vars": {"PLAIN": WITHHELD, "NCCL_DEBUG": "INFO"},
        "working_dir": "https://a/b.zip",
    }


@pytest.mark.parametrize(
    "told",
    ["env_vars:\n  A: [h7Wq2-Zr9_xK4.pLm8", "a: &a [1]\nenv:\n  b: *a\n  c: h7Wq2-Zr9_xK4.pLm8",
     "#!/bin/sh\ncat <<E\nenv:\n  A: h7Wq2-Zr9_xK4.pLm8\nE\nrun {"],
)  # fmt: skip
def test_a_text_with_variables_that_cannot_be_read_is_not_kept(told):
    assert text(told) == WITHHELD


@pytest.mark.parametrize(
    "told", ['exec: "env": executable file not found in $PATH: unknown', "env: node: No such file"]
)
def test_a_sentence_about_env_is_kept(told):
    assert text(told) == told


@pytest.mark.parametrize("name", ["kapp.k14s.io/original", "objectset.rio.cattle.io/applied"])
def test_an_annotation_with_the_whole_object_is_not_kept(name):
    assert "H4sIAAAA" not in kept({"metadata": {"annotations": {name: "H4sIAAAA"}}})


def test_flags_that_name_a_secret_lose_their_value_and_others_do_not():
    words = [
        *("python", "train.py", "--hf-token", PLANTED, f"--api-key={PLANTED}", "--max-tokens=512"),
        *("--tokenizer", "llama", "--secret-name", "vault", "--password-file=/run/p"),
    ]
    assert arguments(words) == [
        *("python", "train.py", "--hf-token", LOOKS_SECRET, f"--api-key={LOOKS_SECRET}"),
        *("--max-tokens=512", "--tokenizer", "llama", "--secret-name", "vault"),
        "--password-file=/run/p",
    ]


def test_a_secret_in_a_script_an_address_or_a_header_is_masked():
    for line in (
        f"export WANDB_API_KEY={PLANTED} && python train.py",
        f"curl -H 'Authorization: Bearer {PLANTED}' x",
        f"git clone https://me:{PLANTED}@example.com/r",
        f'{{"password": "{PLANTED}"}}',
        f"db --password {PLANTED} --verbose",
        f"aws_secret_access_key = {PLANTED}",
    ):
        assert PLANTED not in text(line), line


def test_what_is_evidently_a_token_is_masked_under_any_name():
    for token in (
        *("hf_" + "aB3" * 9, "ghp_" + "x9Y" * 12, "AKIA" + "ABCD" * 4, "glpat-" + "aB3_" * 6),
        *("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",),
        "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----",
    ):
        assert token not in text(f"run it with {token} please")


@pytest.mark.parametrize(
    "told",
    ["hf-llama-7b-finetune-worker-0", "train-sk-learn-baseline-nightly-0", "npm-cache-warmer-daily",
     "reg.example.com:5000/acme/token-classifier:1.4-cuda",
     "restarting failed container=main pod=hf-llama-7b-finetune-0_team-a(3f2504e0-4f89-11d3)"],
)  # fmt: skip
def test_names_of_pods_and_images_are_no_tokens(told):
    item = {"metadata": {"name": told}, "spec": {"image": told, "nodeName": told}, "message": told}
    assert scrubbed(orjson.loads(orjson.dumps(item))) == item


@pytest.mark.parametrize("part", ["sk-", "eyJ-", "a.", "token-", "a://", "env"])
def test_a_long_text_without_a_space_holds_nobody_up(part):
    """What took the square of its length took minutes, and stopped all that is recorded."""
    assert len(text(part * 80_000 + " password=x")) > 80_000


def test_annotations_and_fields_with_a_secret_s_name_are_masked():
    item = pod(annotations={"example.com/api-token": PLANTED, "kueue.x-k8s.io/queue": "q"})
    item["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = PLANTED
    item["metadata"]["managedFields"] = [{"manager": PLANTED}]
    item["spec"]["volumes"] = [{"csi": {"volumeAttributes": {"clientSecret": PLANTED}}}]
    item["spec"]["containers"][0]["livenessProbe"] = {
        "httpGet": {"httpHeaders": [{"name": "Authorization", "value": PLANTED}]}
    }
    found = kept(item)
    assert PLANTED not in found
    assert "kueue.x-k8s.io/queue" in found


def test_what_tells_where_a_secret_lies_or_is_no_secret_stays():
    item = pod(annotations={"example.com/token-path": "/run/t"})
    item["spec"]["volumes"] = [
        {"name": "kube-api-access-x", "secret": {"secretName": "s"}},
        {"projected": {"sources": [{"serviceAccountToken": {"path": "token", "audience": "a"}}]}},
    ]
    item["spec"]["automountServiceAccountToken"] = True
    before = orjson.loads(orjson.dumps(item))
    assert scrubbed(item) == before


@given(
    st.text(string.ascii_letters + string.digits, min_size=12, max_size=30),
    st.sampled_from(["token", "PASSWORD", "api_key", "clientSecret", "DB_PASSWORD"]),
    st.sampled_from(["--{0}={1}", "--{0} {1}", "{0}={1}", "{0}: {1}", '"{0}": "{1}"', "{0}='{1}'"]),
    st.sampled_from(["", "echo start; ", "set -e\n", "a=1 "]),
    st.sampled_from(["", " && run", "\nexit 0", "; done"]),
)
def test_no_planted_secret_survives_in_a_command(planted, name, form, before, after):
    planted = f"Z{planted}q"
    word = before + form.format(name, planted) + after
    item = with_containers(container(command=["sh", "-c", word], args=[word, f"--{name}", planted]))
    assert planted not in kept(item)
