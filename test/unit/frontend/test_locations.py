# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Module paths and source lines out of the metadata torch writes."""

from __future__ import annotations

import pytest

from qcomp.frontend.graph import Location
from qcomp.frontend.locations import make_location, module_path, serialized_module_path

TORCH = "/usr/lib/python3.11/site-packages/torch/nn/modules/conv.py"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", None),
        ("layer.0.conv", "layer.0.conv"),
        ("L['self']", None),
        ("L['self'].layer", "layer"),
        ("L['self'].layer._modules['0'].conv", "layer.0.conv"),
        ("L['self'].layer[0].conv", "layer.0.conv"),
        ("L__self__.block", "block"),
        ("_empty_nn_module_stack_from_metadata_hook", None),
    ],
)
def test_module_path(path: str, expected: str | None) -> None:
    assert module_path(path) == expected


def test_serialized_stack() -> None:
    stack = "L__self__,,models.Net;L__self__body,body,torch.nn.Sequential;4711,body.0,torch.nn.Conv2d"
    assert serialized_module_path(stack) == "body.0"
    assert serialized_module_path("a,L['self'].f(x, y).g,m.T") == "f(x, y).g"
    assert serialized_module_path("rubbish") is None


def test_innermost_frame_outside_torch() -> None:
    trace = f'File "/home/me/model.py", line 12, in forward\n  x = self.conv(x)\nFile "{TORCH}", line 500, in forward'
    assert make_location("conv", trace) == Location("conv", "model.py", 12)
    nested = trace + '\nFile "C:\\code\\block.py", line 3, in forward\nFile "torch/fx/proxy.py", line 9, in f'
    assert make_location(None, nested) == Location(None, "block.py", 3)
    assert make_location("conv", f'File "{TORCH}", line 500, in forward') == Location("conv")
    assert make_location(None, None) == Location()
    assert str(Location("conv", "model.py", 12)) == "conv (model.py:12)"


def test_torchvision_counts_as_user_code() -> None:
    trace = 'File "/lib/site-packages/torchvision/models/resnet.py", line 268, in _forward_impl'
    assert make_location(None, trace) == Location(None, "resnet.py", 268)
