"""What an answer of a Prometheus says: the quick way and the slow one agree, and a torn one fails.

Answers of a real server are read in test_prometheus_server.py.
"""

import json
import math
import struct

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.prometheus_answers import Answer, Broken, understood

EVER = (-(10**15), 10**15)
NAMES = st.sampled_from(["__name__", "UUID", "pod", 'a"b', "ü", '"values":[['])
HOSTILE = st.text() | st.sampled_from(
    ['"values":[[', "]]", '],["', '\\"values\\":[[1,"2"]]', "NaN"]
)
VALUES = st.floats() | st.sampled_from([0.0, -0.0, 1e-320, 2.0**53 + 2])
TIMES = st.integers(-(10**12), 10**13)
SERIES = st.tuples(
    st.dictionaries(NAMES, HOSTILE, min_size=1), st.lists(st.tuples(TIMES, VALUES), max_size=9)
)


def number(value: float) -> str:
    """A float64 as Go writes its shortest form."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


def body(series, compact=True, **envelope) -> bytes:
    """An answer as a server words it; timestamps are seconds with at most three places."""
    result = [
        {"metric": labels, "values": [[at / 1000, number(value)] for at, value in samples]}
        for labels, samples in series
    ]
    whole = {
        "status": "success",
        "data": {"resultType": "matrix", "result": result},
        **envelope,
    }
    separators = (",", ":") if compact else (", ", ": ")
    return json.dumps(whole, separators=separators, ensure_ascii=False).encode("utf-8", "replace")


def bits(value: float | None) -> bytes | None:
    return None if value is None else struct.pack("<d", value)


def content(answer: Answer) -> list[tuple]:
    """What an answer holds, comparable: labels, milliseconds, the bits of the value."""
    labels = [
        tuple(sorted((k, v) for k, v in row["labels"].items() if v is not None))
        for row in answer.data.series.iter_rows(named=True)
    ]
    rows = answer.data.samples.with_columns(pl.col("at").cast(pl.Int64) // 1000).iter_rows()
    return [(labels[series], at, bits(value)) for series, at, value in rows]


def expected(series, window=EVER) -> list[tuple]:
    """The same by plain means: the first of each (series, time), in the answer's order."""
    found = {}
    for labels, samples in series:
        for at, value in samples:
            if window[0] < at <= window[1]:
                key = (tuple(sorted(labels.items())), at)
                found.setdefault(key, None if math.isnan(value) else bits(value))
    return sorted(((*key, value) for key, value in found.items()), key=repr)


def utf8(series):
    return [
        (
            {k: v.encode("utf-8", "replace").decode() for k, v in labels.items()},
            samples,
        )
        for labels, samples in series
    ]


@given(st.lists(SERIES, max_size=6), st.booleans())
def test_every_sample_comes_once_to_the_bit_whatever_the_labels_hold(series, compact):
    answer = understood(body(series, compact), *EVER)
    assert sorted(content(answer), key=repr) == expected(utf8(series))
    assert answer.read_count == sum(len(samples) for _, samples in series)


@given(st.lists(SERIES, max_size=4), TIMES, TIMES)
def test_the_begin_is_left_out_and_the_end_is_in(series, one, other):
    window = (min(one, other), max(one, other))
    answer = understood(body(series), *window)
    assert sorted(content(answer), key=repr) == expected(utf8(series), window)


@given(st.lists(SERIES, min_size=1, max_size=3), st.data())
def test_an_answer_cut_short_anywhere_is_never_taken_for_whole(series, data):
    text = body(series)
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(Broken):
        understood(text[:cut], *EVER)


@pytest.mark.parametrize(
    "values",
    [
        '[[1,"x"]]',
        '[[1,"1",2]]',
        "[[1]]",
        '[["a","1"]]',
        '[[1,""]]',
        "[[1,null]]",
        '[[,"1"]]',
        '[[1,"1"]',
        '[[1,"1"],]',
    ],
)
def test_samples_that_are_none_break_the_answer(values):
    text = (
        '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":%s}]}}'
    )
    with pytest.raises(Broken):
        understood((text % values).encode(), *EVER)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"<html>login</html>",
        b'{"status":"error","errorType":"x","error":"y"}',
        b'{"status":"success"}',
        b'{"status":"success","data":[]}',
        b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}',
        b'{"status":"success","data":{"resultType":"matrix","result":[{"values":[[1,"1"]]}]}}',
    ],
)
def test_what_is_no_answer_of_this_kind_is_broken(text):
    with pytest.raises(Broken):
        understood(text, *EVER)


SOUND = [({"__name__": "x"}, [(1000, 1.0)])]


@pytest.mark.parametrize(
    ("said", "warnings"),
    [
        ({"warnings": ["a", "b"]}, ["a", "b"]),
        ({"infos": ["c"]}, ["c"]),
        ({"isPartial": True}, ["isPartial"]),
        ({"isPartial": False, "warnings": [], "infos": None}, []),
    ],
)
def test_whatever_hints_at_a_part_is_a_warning(said, warnings):
    assert understood(body(SOUND, **said), *EVER).warnings == warnings


def test_the_same_series_twice_is_one_and_another_value_is_told():
    series = [({"a": "1"}, [(1, 1.0), (2, 2.0)]), ({"a": "1"}, [(2, 2.0), (1, 5.0), (3, 3.0)])]
    answer = understood(body(series), *EVER)
    assert [row[1] for row in content(answer)] == [1, 2, 3]
    assert answer.data.series.height == 1
    assert answer.notices == {"duplicate_sample": 2, "conflicting_sample": 1}


def test_nan_is_a_sample_without_a_value_and_is_counted():
    answer = understood(body([({"a": "1"}, [(1, math.nan), (2, math.inf)])]), *EVER)
    assert answer.data.samples["value"].to_list() == [None, math.inf]
    assert answer.notices == {"not_a_number": 1}


def test_native_histograms_are_left_out_with_a_notice():
    text = (
        b'{"status":"success","data":{"resultType":"matrix","result":['
        b'{"metric":{"a":"1"},"histograms":[[1,{"count":"1","sum":"2","buckets":[]}],[2,{}]]},'
        b'{"metric":{"a":"2"},"values":[[1,"3"]],"histograms":[[2,{}]]}]}}'
    )
    answer = understood(text, *EVER)
    assert content(answer) == [((("a", "2"),), 1000, bits(3.0))]
    assert answer.notices == {"native_histogram": 3}
