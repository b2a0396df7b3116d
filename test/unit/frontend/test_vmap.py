# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Masks made by torch.vmap over a function of positions, as the decoders of Hugging Face make them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex

import qcomp


class Decoder(torch.nn.Module):
    """Attention over a sliding window, of what is not padding if `padded`."""

    def __init__(self, padded: bool):
        super().__init__()
        self.padded = padded

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        batch, length, _ = x.shape

        def keeps(item: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            window = (key <= query) & (query - key < 3)
            return window & padding[item, key] if self.padded else window

        mask_of: Any = keeps
        for dims in ((None, None, None, 0), (None, None, 0, None), (None, 0, None, None), (0, None, None, None)):
            mask_of = torch.vmap(mask_of, in_dims=dims, out_dims=0)
        with TransformGetItemToIndex():
            places = torch.arange(batch), torch.arange(1), torch.arange(length), torch.arange(length)
            mask = mask_of(*places)
        scores = (x @ x.transpose(1, 2)).unsqueeze(1).masked_fill(~mask, -1e9)
        return (scores.softmax(-1) @ x.unsqueeze(1)).squeeze(1)


def inputs(batch: int, length: int) -> tuple[Tensor, Tensor]:
    padding = torch.ones(batch, length, dtype=torch.bool)
    padding[0, 1] = padding[-1, 0] = False
    return torch.randn(batch, length, 3), padding


def exported(model: Decoder, given: tuple[Tensor, Tensor], dynamic: bool) -> torch.export.ExportedProgram:
    sizes: Any = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},) * 2 if dynamic else None
    return torch.export.export(model, given, dynamic_shapes=sizes)


@pytest.mark.parametrize("dynamic", [False, True])
def test_masks_of_decoders(dynamic: bool):
    given, model = inputs(2, 5), Decoder(padded=True)
    program = exported(model, given, dynamic)
    text = str(program)
    assert "_add_batch_dim" in text
    module = qcomp.from_torch(program)
    assert str(program) == text
    for case in (given, inputs(3, 7)) if dynamic else (given,):
        (found,) = qcomp.interpret(module, *(value.numpy() for value in case))
        np.testing.assert_allclose(found, model(*case).numpy(), atol=1e-5)


def test_a_file_is_prepared_before_it_is_saved(tmp_path: Path):
    program = exported(Decoder(padded=False), inputs(2, 5), dynamic=True)
    torch.export.save(program, tmp_path / "model.pt2")
    for unprepared in (tmp_path / "model.pt2", program.module()):
        with pytest.raises(qcomp.QcompError, match=r"_remove_batch_dim.*run_decompositions\(\{\}\).*torch.export.save"):
            qcomp.from_torch(unprepared)
    torch.export.save(program.run_decompositions({}), tmp_path / "prepared.pt2")
    assert str(qcomp.from_torch(tmp_path / "prepared.pt2")) == str(qcomp.from_torch(program))
