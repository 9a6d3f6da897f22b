"""Packs the program as a wheel for pip and as a package for npm: packages.py VERSION PROGRAM DIRECTORY.

Both hold the same file and nothing that runs when they are installed."""

import base64
import hashlib
import io
import json
import os
import re
import sys
import tarfile
import time
import zipfile

version, program, directory = sys.argv[1:]
summary = "A full-screen terminal dashboard over a family of LLM agents"
made = int(os.environ["SOURCE_DATE_EPOCH"])
with open(program, "rb") as file:
    yoi = file.read()
with open("README.md", "rb") as file:
    readme = file.read()
# The packages have no documentation: a picture is left out, and a link to a page becomes plain text.
readme = re.sub(rb"!\[[^]]*\]\((?!https?:)[^)]*\)\n\n", b"", readme)
readme = re.sub(rb"\[([^]]*)\]\((?!https?:)[^)]*\)", rb"\1", readme)
with open("LICENSE", "rb") as file:
    license = file.read()


def wheel():
    """https://packaging.python.org/en/latest/specifications/binary-distribution-format/"""
    tags = [f"py3-none-{platform}" for platform in ("manylinux_2_17_x86_64", "musllinux_1_1_x86_64")]
    platforms = ".".join(tag.rsplit("-", 1)[1] for tag in tags)
    info = f"yoi-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: yoi\nVersion: {version}\nSummary: {summary}\nLicense: MIT\n"
    metadata += "Description-Content-Type: text/markdown\n\n"
    wheel = "Wheel-Version: 1.0\nGenerator: yoi\nRoot-Is-Purelib: false\n" + "".join(f"Tag: {tag}\n" for tag in tags)
    files = [
        (f"yoi-{version}.data/scripts/yoi", yoi, 0o755),
        (f"{info}/licenses/LICENSE", license, 0o644),
        (f"{info}/METADATA", metadata.encode() + readme, 0o644),
        (f"{info}/WHEEL", wheel.encode(), 0o644),
    ]
    record = f"{info}/RECORD"
    lines = []
    for name, content, _ in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}\n")
    files.append((record, "".join(lines + [f"{record},,\n"]).encode(), 0o644))
    with zipfile.ZipFile(f"{directory}/yoi-{version}-py3-none-{platforms}.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, mode in files:
            entry = zipfile.ZipInfo(name, time.gmtime(made)[:6])
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)


def npm():
    """https://docs.npmjs.com/cli/configuring-npm/package-json"""
    package = {
        "name": "yoi",
        "version": version,
        "description": summary,
        "license": "MIT",
        "bin": {"yoi": "yoi"},
        "files": ["yoi"],
        "os": ["linux"],
        "cpu": ["x64"],
    }
    files = [
        ("package.json", json.dumps(package, indent=2).encode() + b"\n", 0o644),
        ("README.md", readme, 0o644),
        ("LICENSE", license, 0o644),
        ("yoi", yoi, 0o755),
    ]
    with tarfile.open(f"{directory}/yoi-{version}.tgz", "w:gz") as archive:
        for name, content, mode in files:
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mode, entry.mtime = len(content), mode, made
            archive.addfile(entry, io.BytesIO(content))


wheel()
npm()
