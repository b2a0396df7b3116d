# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The main job from end to end: train, quantize with PT2E, compile to C, run, compare.

A small convolutional network learns the 1,797 handwritten digits of 8x8 pixels that scikit-learn ships. PT2E
quantizes it to int8 with a hundred training images as calibration. qcomp compiles the result to C for this machine and,
for comparison, to portable C99, and both run the test images.

Usage: python examples/digits.py [FOLDER]; FOLDER gets the artifact (default: digits).
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import qcomp

Run = Callable[[Tensor], Tensor]


def data() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Training images and labels, test images and labels; pixels from 0 to 1."""
    pixels, digits = load_digits(return_X_y=True)
    images = torch.tensor(pixels, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
    labels = torch.tensor(digits)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    images, labels = images[order], labels[order]
    return images[:1400], labels[:1400], images[1400:], labels[1400:]


def network() -> nn.Module:
    """Three convolutions with batch norm, global average pooling, a linear layer."""
    layers: list[nn.Module] = []
    for inputs, outputs, stride in ((1, 32, 1), (32, 64, 2), (64, 64, 1)):
        layers += [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def train(model: nn.Module, images: Tensor, labels: Tensor) -> None:
    """Twelve epochs of Adam."""
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for epoch in range(12):
        for rows in torch.randperm(len(labels), generator=torch.Generator().manual_seed(epoch)).split(100):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images[rows]), labels[rows]).backward()
            optimizer.step()
    model.eval()


def quantize(model: nn.Module, calibration: Tensor) -> nn.Module:
    """The converted PT2E graph: int8 weights per channel, uint8 activations."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    exported = torch.export.export(model, (calibration[:1],)).module()
    prepared = prepare_pt2e(exported, quantizer)
    for image in calibration:
        prepared(image.unsqueeze(0))
    return convert_pt2e(prepared)


def measure(name: str, run: Run, images: Tensor, labels: Tensor, reference: Tensor | None) -> Tensor:
    """Run all `images` one by one, print accuracy, agreement with `reference`, and time; return the outputs."""
    with torch.no_grad():
        run(images[:1])
        start = time.perf_counter()
        outputs = torch.cat([run(image) for image in images.split(1)])
        seconds = time.perf_counter() - start
    classes = outputs.argmax(1)
    accuracy = float((classes == labels).float().mean())
    agreement = "" if reference is None else f"{float((classes == reference.argmax(1)).float().mean()):9.1%}"
    print(f"{name:26} {accuracy:8.1%} {agreement:9} {seconds / len(labels) * 1e6:12.1f} us")
    return outputs


def main(folder: str = "digits") -> None:
    """Do it all and save the artifact in `folder`."""
    logging.disable(logging.WARNING)  # torchao's notes, when it is imported, about parts that are not used here
    torch.manual_seed(0)
    train_images, train_labels, images, labels = data()
    model = network()
    train(model, train_images, train_labels)
    converted = quantize(model, train_images[:100])
    with tempfile.TemporaryDirectory() as temporary:
        program = Path(temporary) / "digits.pt2"
        torch.export.save(torch.export.export(converted, (images[:1],)), program)
        artifact = qcomp.compile(program)
        portable = qcomp.compile(program, target="generic")
    artifact.save(folder)

    print(f"{'':26} {'accuracy':>8} {'as PT2E':>9} {'per image':>15}")
    measure("torch, float", model, images, labels, None)
    reference = measure("torch, PT2E int8", converted, images, labels, None)
    measure(f"C for {artifact.manifest.target}", artifact, images, labels, reference)
    outputs = measure("C for any machine", portable, images, labels, reference)
    noise = float((outputs - reference).pow(2).sum().clamp_min(1e-30))
    report = artifact.report()
    library = Path(folder, f"{artifact.manifest.name}.so").stat().st_size
    print(f"signal to noise against PT2E: {10 * torch.log10(reference.pow(2).sum() / noise):.0f} dB")
    print(f"multiply-adds in integers: {report['macs_integer_share']:.1%}")
    print(f"bytes: weights {report['weight_bytes']:,}, arena {report['arena_bytes']:,}, library {library:,}")
    print(f"saved in {folder}: {', '.join(sorted(path.name for path in Path(folder).iterdir()))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
