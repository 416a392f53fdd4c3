"""What a GPU is called however a source spells it, and what part of it a MIG device is."""

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
        ("NVIDIA-A100-80GB-PCIe-SHARED", "a100-80gb"),
        ("NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "h100-80gb"),
        ("Tesla-T4", "t4"),
        ("nvidia-tesla-t4", "t4"),
        ("Tesla-V100-SXM2-32GB", "v100-32gb"),
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
