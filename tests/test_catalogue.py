"""What a GPU is called however a source spells it, and what part of it a MIG device is."""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.gpus import canonical, catalogue, memory_of
from models.mig import profile_in, profile_of, profiles, share
from models.states import CLASSES
from models.workloads import CLASS_OF_KIND, SERVICES


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-80gb"),
        ("h100", "h100-80gb"),
        ("NVIDIA-H100-NVL", "h100-94gb"),
        ("NVIDIA-H200", "h200-141gb"),
        ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", "a100-40gb"),
        ("NVIDIA-A100-80GB-PCIe-SHARED", "a100-pcie-80gb"),
        ("NVIDIA-A100-PCIE-40GB-MIG-1g.5gb", "a100-pcie-40gb"),
        ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("NVIDIA-H200-NVL", "h200-nvl-141gb"),
        ("NVIDIA-GH200-120GB", "gh200-96gb"),
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "h100-80gb"),
        ("Tesla-T4", "t4"),
        ("nvidia-tesla-t4", "t4"),
        ("Tesla-V100-SXM2-32GB", "v100-32gb"),
        ("Tesla-V100-PCIE-32GB", "v100-pcie-32gb"),
        ("V100M16", "v100-16gb"),
        ("NVIDIA-L40S", "l40s"),
        ("NVIDIA-A30", "a30-24gb"),
        ("P100", "p100-16gb"),
        ("AMD_Instinct_MI300X_OAM", "mi300x-192gb"),
        ("Example NPU", "example-npu"),
        ("G2", "g2"),
        ("", "__unknown__"),
        ("  ", "__unknown__"),
        (None, "__unknown__"),
    ],
)
def test_a_model_has_one_name_however_it_is_spelt(spelling, name):
    assert canonical(spelling) == name


@given(st.text())
def test_a_canonical_name_is_its_own_canonical_name(text):
    once = canonical(text)
    assert canonical(once) == once == once.strip()


def test_every_name_of_the_catalogue_means_one_model():
    names = catalogue()
    aliases = [alias for gpu in names.values() for alias in gpu.aliases]
    assert len(aliases) == len(set(aliases))
    assert all(canonical(alias) in names for alias in aliases)
    assert all(memory_of(name) for name in names)


@pytest.mark.parametrize(
    ("spelling", "others"),
    [
        ("NVIDIA-H100-80GB-HBM3", ["NVIDIA-H100-PCIe", "NVIDIA-H100-NVL"]),
        ("NVIDIA-H200", ["NVIDIA-H200-NVL"]),
        ("NVIDIA-A100-SXM4-80GB", ["NVIDIA-A100-80GB-PCIe"]),
        ("NVIDIA-A100-SXM4-40GB", ["NVIDIA-A100-PCIE-40GB"]),
        ("Tesla-V100-SXM2-32GB", ["Tesla-V100-PCIE-32GB"]),
        ("Tesla-V100-SXM2-16GB", ["Tesla-V100-PCIE-16GB", "Tesla-V100-FHHL-16GB"]),
        ("Tesla-P100-SXM2-16GB", ["Tesla-P100-PCIE-16GB", "Tesla-P100-PCIE-12GB"]),
        (
            "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
            ["NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition"],
        ),
    ],
)
def test_a_card_for_a_slot_is_another_model_than_the_module_and_draws_less(spelling, others):
    module = catalogue()[canonical(spelling)]
    for other in (catalogue()[canonical(name)] for name in others):
        assert other.tdp_watts and module.tdp_watts and other.tdp_watts < module.tdp_watts


def test_an_idle_card_draws_less_than_its_limit_and_a_context_adds_to_it():
    for gpu in catalogue().values():
        known = [gpu.rest_bare_watts, gpu.rest_context_watts, gpu.tdp_watts]
        watts = [figure for figure in known if figure is not None]
        assert watts == sorted(set(watts)), gpu


def test_the_memory_of_a_model_is_what_its_name_says():
    for gpu in catalogue().values():
        if named := re.search(r"-(\d+)gb$", gpu.gpu_model_name):
            # A name tells decimal or binary gigabytes, and what drivers keep back is missing.
            assert 0.89 < gpu.memory_mib / 1024 / int(named[1]) < 1.04, gpu


def test_a_model_that_mig_cuts_has_profiles_and_one_of_them_is_the_whole_card():
    cut = {name for name, gpu in catalogue().items() if gpu.mig_compute_slices}
    assert cut == {model for model, _ in profiles()}
    for model in cut:
        whole = (catalogue()[model].mig_compute_slices, catalogue()[model].mig_memory_slices)
        assert whole in {found[:2] for (name, _), found in profiles().items() if name == model}


@pytest.mark.parametrize("key", sorted(profiles()))
def test_the_name_of_a_profile_tells_its_compute_slices_and_its_part_of_the_memory(key):
    model, profile = key
    found, gpu = profiles()[key], catalogue()[model]
    compute, gigabytes = map(int, re.findall(r"\d+", profile))
    assert compute == found.compute_slices
    part = gpu.memory_mib / 1024 * found.memory_slices / (gpu.mig_memory_slices or 0)
    # Names are rounded; an older name of a model (GB200: 189 for 186 GB) is 3 % off at most.
    assert abs(gigabytes - part) < max(1, 0.03 * part)


def test_forms_of_a_card_with_as_much_memory_have_the_same_profiles():
    def of(model: str) -> dict[str, object]:
        return {profile: found for (name, profile), found in profiles().items() if name == model}

    assert of("h100-80gb") == of("h100-pcie-80gb") == of("a100-pcie-80gb") == of("a100-80gb")
    assert of("h200-141gb") == of("h200-nvl-141gb")
    assert of("h200-141gb") != of("gh200-144gb")


def test_the_same_profile_is_another_part_of_another_model():
    assert share("a100-40gb", "1g.10gb") == Fraction(1, 4)
    assert share("a100-80gb", "1g.10gb") == Fraction(1, 7)
    assert share("h100-80gb", "1g.10gb+me") == share("h100-80gb", "1g.10gb.me") == Fraction(1, 7)
    assert share("h100-80gb", "3g.40gb") == Fraction(1, 2)
    assert share("a30-24gb", "2g.12gb") == Fraction(1, 2)
    assert share("rtx-pro-6000-96gb", "1g.24gb") == Fraction(1, 4)


def test_what_the_catalogue_does_not_know_has_no_share():
    assert share("t4", "1g.5gb") is share("a100-40gb", "9g.5gb") is share("x", "nonsense") is None


def test_a_media_extension_is_there_once_a_gpu():
    plain, extended = profile_of("a100-40gb", "1g.5gb"), profile_of("a100-40gb", "1g.5gb.me")
    assert plain and extended
    assert (plain.max_per_gpu, extended.max_per_gpu) == (7, 1)


@pytest.mark.parametrize(("attribute", "most"), [("+gfx", 4), ("-me", 4), ("+me.all", 1)])
def test_graphics_or_no_media_leaves_as_many_devices_a_gpu(attribute, most):
    found = profile_of("rtx-pro-6000-96gb", f"1g.24gb{attribute}")
    assert found and found.max_per_gpu == most


@pytest.mark.parametrize("key", sorted(profiles()))
def test_as_many_devices_as_fit_are_at_most_one_gpu(key):
    model, profile = key
    found, gpu = profiles()[key], catalogue()[model]
    assert found.compute_slices * found.max_per_gpu <= (gpu.mig_compute_slices or 0)
    assert found.memory_slices * found.max_per_gpu <= (gpu.mig_memory_slices or 0)
    part = share(model, profile)
    assert part and part * found.max_per_gpu <= 1


def test_a_product_label_of_strategy_single_names_its_profile():
    assert profile_in("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb") == "1g.5gb"
    assert profile_in("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb.me-SHARED") == "1g.5gb.me"
    assert profile_in("NVIDIA-A100-SXM4-40GB") is None


def test_every_kind_has_a_class_that_exists():
    assert set(CLASS_OF_KIND.values()) <= set(CLASSES)
    assert set(CLASS_OF_KIND) >= SERVICES
