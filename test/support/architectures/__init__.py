# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small seeded versions of well-known architectures, by family.

`ARCHITECTURES` maps a name to an `Architecture`; `build` makes its model, in evaluation mode with batch-norm statistics
taken from data, and its inputs. Sizes are small and odd, so that no two dimensions are alike.
"""

from architectures import (
    audio,
    classic,
    decoders,
    detection,
    encoders,
    generative,
    mobile,
    others,
    recurrent,
    residual,
    segmentation,
)
from architectures.base import ARCHITECTURES, Architecture, build

__all__ = [
    "ARCHITECTURES", "Architecture", "audio", "build", "classic", "decoders", "detection", "encoders", "generative",
    "mobile", "others", "recurrent", "residual", "segmentation",
]  # fmt: skip
