# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that are no exported program, and how to make one of what they were made of."""

from __future__ import annotations

from pathlib import Path

from qcomp.errors import QcompError
from qcomp.suggestions import close_names

PROGRAMS = (".mlir", ".pt2")
_EXPORT = "torch.export.save(torch.export.export(model.eval(), (x,)), 'model.pt2')"
FROM_TORCH = f"export the PyTorch model that it was made of: {_EXPORT}"
_FROM_OTHERS = f"qcomp reads PyTorch programs only: {_EXPORT}"
_KINDS = {
    ".onnx": ("an ONNX model", FROM_TORCH),
    ".pt": ("a pickle of weights, of a module or of TorchScript", f"load it in Python, then {_EXPORT}"),
    ".pth": ("a pickle of weights or of a module", f"load it in Python, then {_EXPORT}"),
    ".pte": ("an ExecuTorch program", FROM_TORCH),
    ".safetensors": ("a file of weights", f"load them into the model in Python, then {_EXPORT}"),
    ".tflite": ("a TensorFlow Lite model", _FROM_OTHERS),
    ".h5": ("a Keras model", _FROM_OTHERS),
    ".keras": ("a Keras model", _FROM_OTHERS),
    ".pb": ("a TensorFlow model", _FROM_OTHERS),
    ".npz": ("a file of arrays", "give it with --inputs or --calibrate, in Python to qcomp.quantize"),
}


def refuse_other_formats(path: Path) -> None:
    """Raise QcompError when `path` is by its name a model of another format, with the way from there to qcomp.

    What is in a .pt or .pth file, the reader of .pt2 archives says.
    """
    known = _KINDS.get(path.suffix.lower())
    if known is not None and path.suffix not in (".pt", ".pth") and path.exists():
        raise QcompError(f"{path} is {known[0]}, not a .pt2 or .mlir program", code="file", hint=known[1])


def check_program_file(path: Path) -> None:
    """Raise QcompError when `path` is not there, or by its name neither IR text nor an exported program."""
    if not path.exists():
        beside = path.parent.glob("*") if path.parent.is_dir() else ()
        near = sorted(other.name for other in beside if other.suffix in PROGRAMS)
        # Suffixes are alike anyway: the names before them must be.
        close = close_names(path.stem, [name.rpartition(".")[0] for name in near])
        likely = [name for name in near if name.rpartition(".")[0] in close]
        hint = f"did you mean {' or '.join(likely)}?" if likely else None
        raise QcompError(f"{path}: no such file", code="file", hint=hint)
    if path.suffix not in PROGRAMS:
        known = _KINDS.get(path.suffix.lower())
        hint = f"it is {known[0]}: {known[1]}" if known else None
        if (path / "manifest.json").is_file():
            hint = "it is the folder of an artifact: give the program that it was made of"
        raise QcompError(f"{path} is neither .mlir nor .pt2", code="file", hint=hint)
