"""A spool's segments as rows: most need nothing of those before them and are read at once.

One with a list after a gap, or with news of the day before, is read in its turn: who was alive
before it is asked of whoever took the rows until then.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, groupby
from pathlib import Path

from collectors.beside import beside
from collectors.coverage import Days, gaps_of
from collectors.late import Late
from collectors.recorded_folder import Folder
from collectors.recorded_kind import read
from collectors.rejections import Rejections
from collectors.source import Batch, Settings
from collectors.streams import survey
from models.window import Window


def segments(
    folder: Folder, settings: Settings, window: Window | None, rejections: Rejections
) -> Iterator[Batch]:
    """The rows of the segments that are to be read, in order."""
    plain = replace(settings, spools={})
    files = [folder.path / name for name in folder.unread]
    in_turn = _in_turn(folder, settings)
    with beside(files) as workers:
        for is_in_turn, names in groupby(folder.unread, key=in_turn.__contains__):
            if is_in_turn:
                for name in names:
                    yield from read(replace(folder, unread=[name]), settings, window, rejections)
                continue
            calls = ((folder.path, name, folder.knows, plain, window) for name in names)
            for batches, told in workers.results(_alone, calls):
                rejections.take(told)
                yield from batches


def _in_turn(folder: Folder, settings: Settings) -> set[str]:
    gaps = list(chain.from_iterable(gaps_of(parts) for parts in folder.streams.values()))
    late, days, found = Late("Pod", gaps, settings.zone, 0, 0), Days(settings.zone), set()
    for name in folder.unread:
        parts = [kinds[name] for kinds in folder.streams.values() if name in kinds]
        first, last = min(part.first for part in parts), max(part.last for part in parts)
        days.of(first)
        if first < late.until_of(days.begin) or last >= days.end:
            found.add(name)
    return found | {gap.file for gap in gaps if gap.file in folder.unread}


def _alone(
    path: Path, name: str, knows: frozenset[str], settings: Settings, window: Window | None
) -> tuple[list[Batch], Rejections]:
    """The rows of one segment, and what of it was refused."""
    rejections = Rejections(settings)
    streams = {kind: {name: part} for kind, part in survey(path / name).kinds.items()}
    folder = Folder(path, is_spool=True, streams=streams, unread=[name], knows=knows)
    return list(read(folder, settings, window, rejections)), rejections
