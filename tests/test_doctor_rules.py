"""What doctor says of activity rules: one for a GPU model that nothing knows would never fit.

What a rule does is tested with the states of GPUs; what of the file is refused, with the config.
"""

from pathlib import Path

from lake.home import Home
from models.config import load
from models.window import midnight
from pipelines import doctor
from tests.report_data import DAYS, ZONE, publish, row


def told(folder: Path, home: Home, *models: str) -> list[str]:
    """What is said of rules for these models, and how to mend it."""
    path = folder / "gpuledger.yaml"
    rules = "".join(f"\n- {{gpu_model: {model}, notice_seconds: 60}}" for model in models)
    path.write_text(f"clusters: [{{name: alpha}}]\nactivity_rules:{rules}\n")
    return [f"{found.what} | {found.mend}" for found in doctor.rules(load(path), home)]


def test_a_rule_for_a_model_of_the_catalogue_however_it_is_spelt_is_sound(tmp_path):
    home = Home(tmp_path / "home")
    assert told(tmp_path, home, "h100-80gb", "NVIDIA A100-SXM4-80GB", "'*'") == []


def test_a_rule_for_a_model_that_nothing_knows_is_named_with_the_line_to_change(tmp_path):
    [said] = told(tmp_path, Home(tmp_path / "home"), "a100-80gb", "h100-08gb")
    assert said.startswith("activity_rules[1].gpu_model: neither the catalogue nor a node")
    assert "did you mean h100-80gb?" in said
    assert "| correct activity_rules[1].gpu_model" in said


def test_a_model_that_the_catalogue_lacks_is_known_by_the_lake_s_nodes(tmp_path):
    home = Home(tmp_path / "home")
    begin = midnight(DAYS[0], ZONE)
    node = row("core.nodes", DAYS[0], gpu_model_name="acme-x9", begin_at=begin, end_at=begin)
    publish(home, [{"core.nodes": [node]}])
    assert told(tmp_path, home, "acme-x9") == []
    [said] = told(tmp_path, home, "acme-x8")
    assert "did you mean acme-x9?" in said
