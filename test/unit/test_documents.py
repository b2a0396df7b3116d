# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code in README and docs runs and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import doc_blocks
import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document(path: Path, tmp_path: Path) -> None:
    doc_blocks.run_document(path, tmp_path)


def test_the_threat_model_names_tests_that_exist() -> None:
    """Each test that SECURITY.md names is there, in the file that it names."""
    rows = [line for line in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines() if "`test" in line]
    assert len(rows) >= 8
    for row in rows:
        for file in re.findall(r"`(test/[\w/.]+)`", row):
            assert (ROOT / file).is_file(), file
        for name, file in re.findall(r"`(test_\w+)` in `(test/[\w/.]+)`", row):
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), name


@pytest.mark.parametrize("path", sorted(ROOT.glob("*.md")) + DOCUMENTS[1:], ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    """Links within the repository name a file, and a heading of it where they name one."""
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, heading = target.partition("#")
        linked = path.parent / file if file else path
        assert linked.exists(), target
        if heading:
            titles = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert heading in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}, target
