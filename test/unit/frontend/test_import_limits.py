# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers in a program that ask for more than there is are refused by op and line, before anything is made."""

from __future__ import annotations

import resource

import pytest
import torch
from torch import nn

import qcomp
from qcomp.refusals import RefusalError

MANY = 1 << 20


class Huge(nn.Module):
    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [
            torch.ones(MANY, MANY)[0, :3] + x,
            x.expand(1 << 37, 3).sum(0),
            x.repeat(1 << 36, 1)[0],
            torch.eye(1 << 19)[0, :3] + x,
            torch.arange(1 << 37)[:3] + x,
            torch.tril_indices(1 << 20, 1 << 20)[:, :3] + x,
            torch.hann_window(1 << 37)[:3] + x,
            torch.linspace(0, 1, 1 << 37)[:3] + x,
            nn.functional.pad(x, (0, 1 << 37))[:, :3],
            torch.full((1 << 37,), 2)[:3] + x,
        ]


def test_what_an_import_would_make(tmp_path_factory: pytest.TempPathFactory):
    program = torch.export.export(Huge(), (torch.zeros(1, 3),))
    path = tmp_path_factory.mktemp("import") / "huge.pt2"
    torch.export.save(program, path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for source in (program, path):
        with pytest.raises(RefusalError) as caught:
            qcomp.from_torch(source)
        text = str(caught.value)
        for name in ("ones", "expand", "repeat", "eye", "arange", "hann_window", "linspace", "pad", "full"):
            assert f"aten.{name}." in text, text
        assert "(limit MAX_ELEMENTS)" in text and "(limit MAX_COMPUTED_BYTES)" in text
        assert "torch refuses" not in text and "test_import_limits.py:" in text
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 << 10
