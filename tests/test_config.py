"""What the configuration may say, and how a fault of it is told."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from models import book
from models.config import TableSource, load, search
from models.config_errors import ConfigError
from models.pricing import Owned, micro, plain
from models.prometheus import PrometheusSource

EXAMPLES = Path(__file__).parents[1] / "examples"
SOUND = """
lake: {accounting_zone: Europe/Berlin, currency: EUR}
clusters:
  - name: alpha
    sources: [{kind: kubernetes, path: recorded}, {kind: table, path: t, mapping: /abs/m.yaml}]
teams: [{name: ml, parent: all, contacts: [a@example.com, b@example.com]}, {name: all}]
team_rules:
  - {team: "{value}", pod_label: {example.com/team: "*"}, namespace: shared}
  - {team: ml, namespace: "ml-*", valid_from: 2026-03-01}
prices:
  - {valid_from: 2026-01-01, gpu_model: "*", per_gpu_hour: "2.10"}
  - {valid_from: 2026-01-01T00:00:00Z, gpu_model: NVIDIA H100 80GB HBM3, per_gpu_hour: "3.9000005"}
  - {valid_from: 2026-01-01, node: gpu-1, per_gpu_hour: "1"}
  - valid_from: 2026-01-01
    node_label: {example.com/pool: owned}
    owned: {capex: "250000", residual: "20000", years: 5, gpus: 8, draw_watts: 10200, pue: "1.3",
            tariff_per_kwh: "0.12", opex_per_month: "900"}
fleet: [{cluster: alpha, gpu_model: h100, count: 64, from: 2026-01-01, to: 2026-06-01}]
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "gpuledger.yaml"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def fault(written):
    def told(text):
        with pytest.raises(ConfigError) as caught:
            load(written(text))
        return str(caught.value)

    return told


def test_an_empty_file_is_a_configuration_in_utc_and_dollars(written):
    config = load(written(""))
    assert (config.lake.accounting_zone, config.lake.currency) == ("UTC", "USD")


def test_the_prometheus_that_the_example_leaves_out_is_sound(tmp_path):
    text = (EXAMPLES / "gpuledger.yaml").read_text()
    taken = text.replace("      # - kind: prom", "      - kind: prom").replace(
        "      #   ", "        "
    )
    path = tmp_path / "gpuledger.yaml"
    path.write_text(taken)
    _, source = load(path).clusters[0].sources
    assert isinstance(source, PrometheusSource)
    assert source.tenant == "platform"


def test_the_shipped_examples_are_sound():
    assert load(EXAMPLES / "gpuledger.yaml").clusters[0].name == "alpha"
    assert load(EXAMPLES / "openb/gpuledger.yaml").clusters[0].sources[0].kind == "table"


def test_relative_paths_count_from_the_folder_of_the_file(written, tmp_path):
    recorded, table = load(written(SOUND)).clusters[0].sources
    assert recorded.path == tmp_path / "recorded"
    assert isinstance(table, TableSource)
    assert table.mapping.as_posix() == "/abs/m.yaml"


def test_a_bare_date_begins_at_midnight_of_the_accounting_zone(written):
    prices = book.frames(load(written(SOUND)))["raw.prices"]
    assert prices["valid_from_at"][0] == datetime(2025, 12, 31, 23, tzinfo=UTC)
    assert prices["valid_from_at"][1] == datetime(2026, 1, 1, tzinfo=UTC)


def test_each_price_row_has_a_readable_key_its_rank_and_its_derivation(written):
    rows = book.frames(load(written(SOUND)))["raw.prices"].to_dicts()
    assert [row["price_id"] for row in rows] == [
        "*@2025-12-31T23:00:00Z",
        "h100-80gb@2026-01-01T00:00:00Z",
        "node=gpu-1@2025-12-31T23:00:00Z",
        "label=example.com/pool=owned@2025-12-31T23:00:00Z",
    ]
    assert [row["rank_number"] for row in rows] == [1, 2, 5, 4]
    assert [row["price_micro_cost_per_gpu_hour"] for row in rows[:3]] == [
        2_100_000,
        3_900_001,
        1_000_000,
    ]
    assert rows[0]["gpu_model_name"] is None
    assert rows[3]["derivation_text"].endswith("/ 8 GPUs = 1.009402 EUR per GPU-hour")


def test_owned_hardware_costs_its_wear_its_power_and_its_running(written):
    owned = Owned.model_validate(
        {"capex": "87600", "years": 1, "gpus": 2, "draw_watts": 1000, "tariff_per_kwh": "0.5"}
        | {"opex_per_month": "730", "pue": "2"}
    )
    assert owned.per_gpu_hour() == (10 + 1 + 1) / Decimal(2)


PRICED_ABROAD = """
lake: {currency: EUR}
prices: [{valid_from: 2026-01-01, gpu_model: "*", per_gpu_hour: "2.00", currency: USD}]
rates:
  - {valid_from: 2026-02-01, currency: USD, rate: "0.85"}
  - {valid_from: 2025-12-01, currency: USD, rate: "0.90"}
  - {valid_from: 2025-01-01, currency: USD, rate: "0.95"}
"""


def test_a_price_in_another_currency_is_converted_at_each_dated_rate(written):
    rows = book.frames(load(written(PRICED_ABROAD)))["raw.prices"].to_dicts()
    assert [(row["applies_from_at"].month, row["price_id"]) for row in rows] == [
        (1, "*@2026-01-01T00:00:00Z"),
        (2, "*@2026-01-01T00:00:00Z at the rate of 2026-02-01T00:00:00Z"),
    ]
    assert [row["price_micro_cost_per_gpu_hour"] for row in rows] == [1_800_000, 1_700_000]
    assert {row["valid_from_at"] for row in rows} == {datetime(2026, 1, 1, tzinfo=UTC)}
    assert rows[1]["derivation_text"] == "2.00 USD x 0.85 = 1.700000 EUR per GPU-hour"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("2025-12-01", "2026-03-01", None),
        ("currency: USD}]", "currency: CHF}]", "CHF has no rate valid by 2026-01-01T00:00:00Z"),
        ("currency: USD}]", "currency: UDS}]", "is no ISO 4217 code; did you mean"),
        ("2025-12-01, currency: USD", "2025-12-01, currency: EUR", "is the accounting currency"),
        ("2025-12-01", "2026-02-01", "rates[1]: begins with rates[0]: USD"),
        ('"0.95"', '"0"', "rates[2].rate"),
    ],
)
def test_a_rate_that_is_missing_or_twice_is_a_fault(written, old, new, fault):
    path = written(PRICED_ABROAD.replace(old, new))
    if fault is None:
        assert load(path)
        return
    with pytest.raises(ConfigError, match=re.escape(fault)):
        load(path)


def test_two_activity_rules_for_the_same_gpus_and_work_are_a_fault(written):
    rules = "clusters: [{name: c}]\nactivity_rules: [{gpu_model: h100-sxm, notice_seconds: 60}, %s]"
    twice = written(rules % "{gpu_model: H100-SXM, notice_seconds: 90}")
    with pytest.raises(ConfigError, match=re.escape("activity_rules[1]")):
        load(twice)
    assert load(written(rules % "{gpu_model: h100-sxm, workload_class: batch}"))


def test_half_a_micro_unit_is_rounded_up():
    assert [micro(Decimal(text)) for text in ("0.0000005", "0.00000049", "1")] == [1, 0, 1_000_000]


def test_the_condition_that_value_stands_for_comes_first(written):
    rows = book.frames(load(written(SOUND)))["raw.team_rules"].to_dicts()
    assert [(r["rule_number"], r["condition_number"], r["field_name"]) for r in rows] == [
        (1, 1, "pod_label"),
        (1, 2, "namespace"),
        (2, 1, "namespace"),
    ]
    assert rows[2]["valid_from_at"] == datetime(2026, 2, 28, 23, tzinfo=UTC)


def test_every_frame_keeps_its_contract(written):
    for name, frame in book.frames(load(written(SOUND))).items():
        assert frame.height, name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("laek: {}", "laek: unknown key; the nearest valid one is lake"),
        ("lake: {curency: EUR}", "lake.curency: unknown key; the nearest valid one is currency"),
        (
            "clusters: [{name: a, sources: [{kind: kubernetes, path: x, pth: y}]}]",
            "clusters[0].sources[0].pth: unknown key; the nearest valid one is path",
        ),
        (
            "prices: [{valid_from: 2026-01-01, node: n, owned: {capex: '1', yeers: 2}}]",
            "prices[0].owned.yeers: unknown key; the nearest valid one is years",
        ),
        (
            "clusters: [{name: a, sources: [{kind: kubernets, path: x}]}]",
            "'kubernets' is not one of kubernetes, table, prometheus; did you mean kubernetes?",
        ),
        ("lake: {accounting_zone: Europe/Berln}", "did you mean Europe/Berlin?"),
        ("lake: {currency: USDD}", "lake.currency: is no ISO 4217 code"),
        ("policies: {loading_max_seconds: -1}", "policies.loading_max_seconds"),
        ("clusters: {a: b}", "clusters: must be a list"),
        ("lake: [1]", "lake: must be a mapping of keys"),
        ("a: 1\na: 2", "the key a is given twice"),
        ("lake: [", "is not valid YAML"),
        ("- lake", "must be a mapping"),
        ("clusters: [{name: a b}]", "clusters[0].name: 'a b' does not fit"),
        ("clusters: [{name: a}, {name: a}]", "clusters[1]: a is there already, as clusters[0]"),
        ("fleet: [{cluster: a, gpu_model: t4, count: 1}]", "fleet[0].from: is missing"),
        (
            "clusters: [{name: alpha}]\nfleet: [{cluster: alhpa, gpu_model: t4, count: 1, "
            "from: 2026-01-01}]",
            "fleet[0].cluster: alhpa is no cluster; did you mean alpha?",
        ),
        (
            "prices: [{valid_from: 2026-01-01, gpu_model: t4, per_gpu_hour: 2.5}]",
            'prices[0].per_gpu_hour: is a binary fraction: write it in quotes, "2.5"',
        ),
        (
            "prices: [{valid_from: '2026-01-01T00:00', gpu_model: t4, per_gpu_hour: '1'}]",
            "an instant needs its offset",
        ),
        (
            "prices: [{valid_from: 2026-01-01, cluster: a, per_gpu_hour: '1'}]",
            "what it covers is not clear; allowed: node",
        ),
        (
            "prices: [{valid_from: 2026-01-01, cluster: a, gpu_model: '*', per_gpu_hour: '1'}]",
            "what it covers is not clear",
        ),
        (
            "prices: [{valid_from: 2026-01-01, gpu_model: t4}]",
            "needs per_gpu_hour or owned, one of the two",
        ),
        (
            "prices:\n- {valid_from: 2026-01-01, gpu_model: h100, per_gpu_hour: '1'}\n"
            "- {valid_from: 2026-01-01T00:00:00Z, gpu_model: NVIDIA-H100-80GB-HBM3, "
            "per_gpu_hour: '2'}",
            "prices[1]: covers the same from the same instant on as prices[0]",
        ),
        ("teams: [{name: a, parent: b}, {name: b, parent: a}]", "a circle: a > b > a"),
        ("teams: [{name: a, parent: x}]", "teams[0].parent: x is no team"),
        (
            "teams: [{name: ml}]\nteam_rules: [{team: lm, namespace: x}]",
            "team_rules[0].team: lm is no team",
        ),
        ("team_rules: [{team: a}]", "needs a condition"),
        ("team_rules: [{team: __idle__, queue: q}]", "reserved holders"),
        (
            "team_rules: [{team: '{value}', queue: 'a*', namespace: 'b*'}]",
            "more than one condition has a wildcard",
        ),
        (
            "team_rules: [{team: a, namespace: 'x-*'}, {team: b, namespace: x-1, queue: q}]",
            "rule 2 can never match, because rule 1",
        ),
        (
            "team_rules: [{team: a, queue: q, valid_from: 2026-02-01, valid_to: 2026-01-01}]",
            "team_rules[0].valid_to: is not after valid_from",
        ),
    ],
)
def test_a_fault_is_told_with_its_file_its_key_and_what_is_wrong(fault, text, words):
    said = fault(text)
    assert words in said
    assert "gpuledger.yaml: " in said


def test_a_dated_rule_hides_no_later_one(written):
    load(written("team_rules: [{team: a, queue: q, valid_to: 2026-01-01}, {team: b, queue: q}]"))


def test_all_faults_are_told_at_once(fault):
    said = fault("laek: 1\nclusterz: 2\npolicies: {provisional_days: x}")
    assert len(said.splitlines()) == 3


def test_a_missing_file_is_a_fault_of_the_configuration(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "none.yaml")


def test_the_file_told_wins_then_the_variable_then_the_folders_above(
    written, tmp_path, monkeypatch
):
    here = written("")
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert search(below) == here
    monkeypatch.setenv("GPULEDGER_CONFIG", str(tmp_path / "other.yaml"))
    assert search(below) == tmp_path / "other.yaml"
    assert search(below, tmp_path / "told.yaml") == tmp_path / "told.yaml"


def test_no_file_anywhere_is_told_with_what_to_do(tmp_path):
    with pytest.raises(ConfigError, match="give --config"):
        search(tmp_path)


@given(st.text())
def test_a_key_made_of_hostile_text_is_no_formula_and_no_second_cell(text):
    safe = plain(text)
    assert safe[:1] not in ("=", "+", "-", "@") or not safe
    assert not set(',;"\n\r\t') & set(safe)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(
                st.sampled_from(["lake", "prices", "teams", "kind", "x"]) | st.text(), x
            )
        ),
        max_leaves=20,
    )
)
def test_whatever_a_file_holds_it_loads_or_says_why(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("config") / "gpuledger.yaml"
    path.write_text(yaml.safe_dump(content, allow_unicode=False))
    try:
        load(path)
    except ConfigError as error:
        assert str(path) in str(error)


MAIL = "mail: {host: smtp.example.com, sender: a@example.com}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mail: {host: a, sender: a@b.c, pasword: hunter2}", "the nearest valid one is password"),
        ("mail: {host: a, sender: a@b.c, user: u, password: hunter2}", "mail.password: must be a"),
        ("mail: {host: a, sender: a@b.c, user: u}", "user and password are needed together"),
        (
            "mail: {host: a, sender: a@b.c, security: none, user: u, password: {env: P}}",
            "a password needs security: starttls or tls",
        ),
        ('mail: {host: a, sender: "x@y.z\\r\\nBcc: a@b.c"}', "mail.sender: is no mail address"),
        ("reports: [{name: a, kind: team}]", "mail: is missing"),
        (MAIL + "reports: [{name: a, kind: teams}]", "reports[0].kind: 'teams' is not one of"),
        (MAIL + "reports: [{name: a, kind: team, on: mondy}]", "did you mean monday?"),
        (MAIL + "reports: [{name: a, kind: team, at: 7:00}]", "reports[0].at: is no time of day"),
        (MAIL + "reports: [{name: a, kind: platform}]", "needs recipients"),
        (MAIL + "reports: [{name: a, kind: team, recipients: []}]", "neither contacts nor a list"),
        (MAIL + "reports: [{name: a, kind: team, recipients: [me]}]", "recipients[0]: is no mail"),
        (
            MAIL + "teams: [{name: vision}]\nreports: [{name: a, kind: team, teams: [visoin]}]",
            "reports[0].teams: visoin is no team; did you mean vision?",
        ),
        (
            MAIL + "reports: [{name: a-b, kind: team}, {name: A_b, kind: team}]",
            "A_b is there already, as reports[0]",
        ),
    ],
)
def test_a_fault_of_mail_and_reports_is_told_without_a_secret(fault, text, said):
    assert said in fault(text)
    assert "hunter2" not in fault(text)


def test_a_server_listens_where_its_security_usually_does(written):
    ports = {}
    for security in ("starttls", "tls", "none"):
        mail = load(written(MAIL.replace("}", f", security: {security}}}"))).mail
        assert mail is not None
        ports[security] = mail.at[1]
    assert ports == {"starttls": 587, "tls": 465, "none": 25}


def test_on_is_a_key_although_yaml_takes_it_for_a_truth(written):
    [plan] = load(written(MAIL + "reports: [{name: a, kind: team, on: friday}]")).reports
    assert plan.cron == "0 7 * * 5"
