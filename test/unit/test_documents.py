# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The code in README and docs runs and prints what it says."""

from __future__ import annotations

from pathlib import Path

import doc_blocks
import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document(path: Path, tmp_path: Path) -> None:
    doc_blocks.run_document(path, tmp_path)
