"""Builds the wheel of this directory's package (PEP 517 and 660) with the standard library alone."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import tarfile
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The strings of pyproject.toml, whose keys differ: Python reads TOML from 3.11 on only.
PROJECT = dict(re.findall(r'^([a-z-]+) = "(.*)"$', (HERE / "pyproject.toml").read_text("utf-8"), re.MULTILINE))
STEM = "{name}-{version}".format(**PROJECT)
METADATA = (
    "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: {description}\n"
    "License: Apache-2.0\nRequires-Python: {requires-python}\n"
).format(**PROJECT)
WHEEL = "Wheel-Version: 1.0\nGenerator: sailor\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def sources() -> dict[str, bytes]:
    """The package's files by their paths."""
    files = sorted(path for path in (HERE / "sailor").iterdir() if path.is_file())
    return {f"sailor/{path.name}": path.read_bytes() for path in files}


def write_wheel(directory: str, files: dict[str, bytes]) -> str:
    info = f"{STEM}.dist-info"
    files = {**files, f"{info}/METADATA": METADATA.encode(), f"{info}/WHEEL": WHEEL.encode()}
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    name = f"{STEM}-py3-none-any.whl"
    with zipfile.ZipFile(Path(directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path)  # of 1980: equal sources give equal bytes
            entry.external_attr = 0o100644 << 16
            wheel.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, sources())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {"sailor.pth": f"{HERE}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    files = {"PKG-INFO": METADATA.encode(), **sources()}
    files.update((name, (HERE / name).read_bytes()) for name in ("pyproject.toml", "backend.py"))
    with tarfile.open(Path(sdist_directory, f"{STEM}.tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{STEM}/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return f"{STEM}.tar.gz"
