"""What all commands share: which configuration and home, exit codes, and how they speak.

What a command does belongs in its own module; nothing here imports Dagster.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

if TYPE_CHECKING:
    from lake.home import Home
    from models.config import Config
    from pipelines.process import Progress

DONE, REFUSED, USAGE, UNREACHABLE = 0, 1, 2, 3
"""The exit codes."""
HOME_VARIABLE, FOLDER = "GPULEDGER_HOME", ".gpuledger"
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def stop(message: str, code: int = USAGE) -> NoReturn:
    """End the command with a message on stderr and an exit code."""
    for line in message.splitlines() or [""]:
        typer.echo(f"gpuledger: {plain(line)}", err=True)
    raise typer.Exit(code)


def note(message: str) -> None:
    """Say something that is no part of the answer, on stderr."""
    typer.echo(plain(message), err=True)


def plain(text: str) -> str:
    """The text without what would steer a terminal: names from clusters are hostile input."""
    return CONTROL.sub("�", text)


def config_path(told: Path | None) -> Path | None:
    """The configuration's file; None where there is none and none was asked for."""
    from models.config import VARIABLE, search
    from models.config_errors import ConfigError

    try:
        return search(Path.cwd(), told)
    except ConfigError:
        if told or os.environ.get(VARIABLE):
            raise
        return None


def config_of(told: Path | None) -> "tuple[Config, Path]":
    """The configuration and its file; ConfigError where there is none."""
    from models.config import load, search

    path = search(Path.cwd(), told)
    return load(path), path


def home_of(told: Path | None) -> "Home":
    """GPULEDGER_HOME, else .gpuledger beside the configuration, else in the working folder."""
    from lake.home import Home

    if named := os.environ.get(HOME_VARIABLE):
        return Home(Path(named).expanduser())
    path = config_path(told)
    return Home((path.parent if path else Path.cwd()) / FOLDER)


@contextmanager
def progress(title: str) -> "Iterator[Progress]":
    """A bar on stderr for what may take a while; it says nothing where no one looks."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as p:
        task = p.add_task(title)

        def step(name: str, done: int, total: int) -> None:
            p.update(task, description=f"{title}: {name}", completed=done, total=total)

        yield step


@contextmanager
def answering() -> Iterator[None]:
    """Turn what a user can mend into one message and an exit code, without a traceback."""
    import duckdb

    from lake.errors import LakeError
    from models.config_errors import ConfigError

    try:
        yield
    except (ConfigError, LakeError) as error:
        stop(str(error))
    except duckdb.Error as error:
        stop(str(error))
    except BrokenPipeError:
        sys.stderr.close()
        raise typer.Exit(DONE) from None
    except OSError as error:
        stop(f"{error.filename or 'a file'}: {error.strerror or error}")
