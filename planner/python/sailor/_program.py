"""Finds and runs the program `sailor`, and turns its errors into exceptions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable, NamedTuple, Optional, Union

DONE, NO_PLAN, TIME_LIMIT = 0, 3, 4  # exit codes; 1: failed, 2: bad usage or input


class SailorError(Exception):
    """The program is missing, failed, or rejected its input.

    The message is the program's own line. `exit_code` is 1 when the program failed, 2 for bad input, 3 and 4 for NoPlan and
    TimeLimit, negative when a signal ended it, and None when it did not run.
    """

    def __init__(self, message: str, exit_code: Optional[int] = None):
        super().__init__(message)
        self.exit_code = exit_code


class NoPlan(SailorError):
    """No plan is feasible.

    `reason` names the limit that excludes all plans, and the smallest change that helps; `rejected` has the number of rejected
    candidates by reason.
    """

    def __init__(self, message: str, exit_code: int, reason: str, rejected: dict[str, int]):
        super().__init__(message, exit_code)
        self.reason = reason
        self.rejected = rejected


class TimeLimit(NoPlan):
    """The time limit was reached before any plan was found."""


class Output(NamedTuple):
    exit_code: int
    text: str
    notes: list[str]  # lines `sailor: note: ...` of standard error, without these words
    errors: list[str]  # its other lines


def read_result(file: Path, version_key: str, scrub: Callable[[str], str] = str) -> dict[str, Any]:
    """The JSON object that the program has written; SailorError if it is none, or of another version."""
    try:
        data = json.loads(scrub(file.read_text(encoding="utf-8")))
        version = data[version_key]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SailorError(f"the output of sailor is not the JSON that this package reads: {error!r}") from error
    if version != 1:
        raise SailorError(f"the output of sailor has {version_key} {version}, this package reads 1: update it")
    return data


def find(program: Optional[Union[str, os.PathLike[str]]]) -> str:
    """The path of the program; SailorError if there is none."""
    for name, origin in ((program, "the argument program"), (os.environ.get("SAILOR_PROGRAM"), "SAILOR_PROGRAM")):
        if name:
            path = shutil.which(os.fspath(name))
            if path is None:
                raise SailorError(f"there is no program {os.fspath(name)} (from {origin})")
            return path
    path = shutil.which("sailor")
    if path is None:
        raise SailorError("the program sailor is not on PATH: build or install it, set SAILOR_PROGRAM, or pass program=")
    return path


def run(command: list[str], scrub: Callable[[str], str] = str) -> Output:
    """Runs a command of `sailor` to its end; `scrub` changes its output. SailorError unless it found a result or none exists."""
    try:
        process = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace", check=False
        )
    except OSError as error:
        raise SailorError(f"cannot run {command[0]}: {error.strerror}") from error
    prefix, note = "sailor: ", "note: "
    lines = [line[len(prefix) :] if line.startswith(prefix) else line for line in scrub(process.stderr).splitlines()]
    notes = [line[len(note) :] for line in lines if line.startswith(note)]
    errors = [line for line in lines if not line.startswith(note)]
    code = process.returncode
    if code < 0:
        raise SailorError(f"sailor {command[1]} was ended by signal {-code}", code)
    if code not in (DONE, NO_PLAN, TIME_LIMIT):
        raise SailorError(errors[-1] if errors else f"sailor {command[1]} ended with exit code {code}", code)
    return Output(code, scrub(process.stdout), notes, errors)
