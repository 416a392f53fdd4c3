"""The series and samples of a stretch, numbered, so that all that follows is arithmetic on columns.

What a label means belongs to `dcgm_labels`, what becomes of a sample to `dcgm`.
"""

from dataclasses import dataclass, field

import polars as pl

from collectors import dcgm_labels
from collectors.dcgm_names import FIELDS, NUMBERS, UTILISATION
from collectors.prometheus import Fetched
from collectors.rejections import Rejections
from collectors.tallies import Counts
from models.table import INSTANT


@dataclass
class Hour:
    """What is gathered, quantity by quantity; a key is a device and a time, or a row and a time."""

    fetched: Fetched
    series: pl.DataFrame
    """Each with its `id`, its place here."""
    samples: list[pl.DataFrame]
    """`id`, `quantity` (of the series), `at` in milliseconds, `value`."""
    rejections: Rejections
    readings: dict[str, pl.DataFrame] = field(default_factory=dict)
    """Quantity -> key, value."""
    refused: list[pl.Series] = field(default_factory=list)
    """The key of each sample that is no reading."""
    times: list[pl.Series] = field(default_factory=list)
    """The rows of raw.gpu_series and their times."""
    told: list[tuple[str, pl.Series]] = field(default_factory=list)
    """A quantity, and the rows of raw.gpu_series that had values of it."""
    counts: Counts = field(default_factory=Counts)

    @property
    def length(self) -> int:
        """Room for the times under one number."""
        return self.fetched.segment.end - self.fetched.segment.begin + 1

    @property
    def zone(self) -> str:
        """The accounting zone."""
        return self.rejections.settings.zone

    def keys(self, frame: pl.DataFrame, name: str) -> pl.Series:
        """The key of each sample, by one of the numbers of its series."""
        number = self.series[name].gather(frame["id"])
        return number * self.length + (frame["at"] - self.fetched.segment.begin)

    def at(self, key: pl.Expr) -> pl.Expr:
        """The time in a key, as an instant."""
        since = key % self.length + self.fetched.segment.begin
        return (since * 1000).cast(INSTANT)


def numbered(fetched: Fetched) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    """The series that have samples, understood, and the samples with the number of theirs."""
    spans = []
    for piece, data in enumerate(fetched.data):
        at = pl.col("at").cast(pl.Int64()) // 1000
        spans.append(
            data.samples.group_by("series_number", maintain_order=True)
            .agg(at.min().alias("begin"), at.max().alias("end"), pl.len().alias("samples"))
            .select(pl.lit(piece, pl.UInt32()).alias("piece"), pl.all())
        )
    table = dcgm_labels.table(fetched.data)
    kinds = {"begin": pl.Int64(), "end": pl.Int64(), "samples": pl.UInt32()}
    schema = {"piece": pl.UInt32(), "series_number": pl.UInt32(), **kinds}
    found = pl.concat([pl.DataFrame(schema=schema), *spans])
    table = table.join(found, on=["piece", "series_number"], maintain_order="left")
    names = {name: FIELDS[number].quantity for name, number in NUMBERS.items()}
    series = dcgm_labels.read(table, fetched.data).with_row_index("id")
    series = series.with_columns(
        pl.col("__name__")
        .replace_strict(NUMBERS, default=None, return_dtype=pl.Int64())
        .alias("field"),
        pl.col("__name__")
        .replace_strict(names, default=None, return_dtype=pl.String())
        .alias("quantity"),
        (pl.col("pod_name") == "").alias("is_bare"),
    )
    # A GPU's utilisation is not an instance's: it is 0 there, or the whole GPU's.
    is_other = (pl.col("quantity") == UTILISATION) & (pl.col("instance_number") >= 0)
    series = series.with_columns(
        pl.when(pl.col("fault").is_null() & ~is_other).then(pl.col("quantity")).alias("quantity"),
        pl.when(~is_other).then(pl.col("field")).alias("field"),
    )
    samples = []
    for piece, data in enumerate(fetched.data):
        mine = series.filter(pl.col("piece") == piece).select("series_number", "id", "quantity")
        mine = mine.with_columns(pl.col("quantity").cast(pl.Categorical()))
        samples.append(
            data.samples.join(mine, on="series_number", maintain_order="left").select(
                "id", "quantity", pl.col("at").cast(pl.Int64()) // 1000, "value"
            )
        )
    return series, samples
