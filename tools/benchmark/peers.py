# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""int8 networks beside ONNX Runtime and OpenVINO: latency in one interleaved run, bytes to deploy, one thread.

Each engine quantizes the same float network in its maker's recommended way: qcomp from PT2E's X86InductorQuantizer,
ONNX Runtime by quantize_static (QDQ, uint8 activations, int8 weights per channel), OpenVINO by nncf.quantize.
Engines that are not installed are named and left out: pip install onnx onnxscript onnxruntime openvino nncf.
"""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import qcomp
from tools.benchmark.models import SHAPES, burst, networks, pytorch_network

CALIBRATION_SAMPLES = 8


@dataclass(frozen=True)
class Engine:
    """A network made ready to run on one engine."""

    run: Callable[[], object]  # one inference of the bound input
    model_bytes: int  # the network as that engine stores it
    runtime_bytes: int  # the shared libraries that have to be there beside it


def add_arguments(parser: ArgumentParser) -> None:
    """Add the networks to run and the time for each."""
    parser.add_argument("names", nargs="*", metavar="NETWORK", help=f"of {', '.join(SHAPES)}; all by default")
    parser.add_argument("--rounds", type=int, default=6, help="rounds over all engines for each network (default: 6)")


def run(args: Namespace) -> int:
    """Print a line for each network: milliseconds and bytes of each engine, and the best peer's time over qcomp's."""
    engines = {name: prepare for name, (prepare, needs) in ENGINES.items() if _installed(name, needs)}
    peers = [name for name in engines if name != "qcomp"]
    print(f"{'network':14}" + "".join(f"{name + ' ms':>16}{'KB':>9}" for name in engines) + f"{'peer/qcomp':>12}")
    ratios: list[float] = []
    runtime: dict[str, int] = {}
    for name in args.names or SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            float_network = pytorch_network(name)
            ready = {engine: prepare(*float_network, Path(folder)) for engine, prepare in engines.items()}
            least = _least_times({engine: each.run for engine, each in ready.items()}, args.rounds)
        runtime.update({engine: each.runtime_bytes for engine, each in ready.items()})
        cells = "".join(f"{least[key] * 1e3:16.4f}{ready[key].model_bytes / 1e3:9.0f}" for key in engines)
        ratio = min((least[peer] for peer in peers), default=float("nan")) / least["qcomp"]
        ratios.append(ratio)
        print(f"{name:14}{cells}{ratio:12.2f}", flush=True)
    print("runtime libraries: " + ", ".join(f"{engine} {size / 1e6:.1f} MB" for engine, size in runtime.items()))
    if peers:
        print(f"geometric mean of best peer / qcomp: {statistics.geometric_mean(ratios):.2f}")
    return 0


def _installed(name: str, needs: Sequence[str]) -> bool:
    missing = [need for need in needs if importlib.util.find_spec(need) is None]
    if missing:
        print(f"{name} is left out: {', '.join(missing)} not installed")
    return not missing


def _least_times(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the least time of a call of each engine in seconds; the engines take turns."""
    least = dict.fromkeys(calls, float("inf"))
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            least[name] = min(least[name], *burst(call))
    return least


def _calibration(shape: Sequence[int]) -> list[Any]:
    import torch

    generator = torch.Generator().manual_seed(2)
    return [torch.randn(tuple(shape), generator=generator) for _ in range(CALIBRATION_SAMPLES)]


def _qcomp(model: Any, example: Any, folder: Path) -> Engine:
    import torch

    _, converted = networks().quantize(model, (example,), "x86")
    artifact = qcomp.compile(torch.export.export(converted, (example,)))
    artifact.save(folder / "qcomp")
    arrays = [example.numpy()]
    library = next((folder / "qcomp").glob("*.so"))
    return Engine(lambda: artifact(*arrays), library.stat().st_size, 0)


def _onnx(model: Any, example: Any, folder: Path) -> Path:
    """Write the float network as ONNX, input named "input", and return its path."""
    path = folder / "float.onnx"
    exporter = _module("torch.onnx")
    options = {"dynamo": True, "input_names": ["input"], "external_data": False, "verbose": False}
    exporter.export(model, (example,), str(path), **options)
    return path


def _onnx_runtime(model: Any, example: Any, folder: Path) -> Engine:
    onnxruntime, quantization = _module("onnxruntime"), _module("onnxruntime.quantization")
    samples = map(_as_inputs, _calibration(example.shape))

    def get_next(_: object) -> dict[str, Any] | None:
        return next(samples, None)

    reader: Any = type("Samples", (quantization.CalibrationDataReader,), {"get_next": get_next})
    path = folder / "int8.onnx"
    quantization.quantize_static(
        str(_onnx(model, example, folder)), str(path), reader(),
        quant_format=quantization.QuantFormat.QDQ, per_channel=True,
        activation_type=quantization.QuantType.QUInt8, weight_type=quantization.QuantType.QInt8,
    )  # fmt: skip
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    inputs = {"input": example.numpy()}
    libraries = Path(onnxruntime.__file__).parent.glob("capi/onnxruntime_pybind11_state*.so")
    return Engine(lambda: session.run(None, inputs), path.stat().st_size, _size(libraries))


def _openvino(model: Any, example: Any, folder: Path) -> Engine:
    nncf, openvino = _module("nncf"), _module("openvino")
    converted = openvino.convert_model(str(_onnx(model, example, folder)))
    samples = nncf.Dataset(_calibration(example.shape), _as_inputs)
    quantized = nncf.quantize(converted, samples, subset_size=CALIBRATION_SAMPLES)
    openvino.save_model(quantized, folder / "int8.xml", compress_to_fp16=False)
    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": "1"}
    request = openvino.Core().compile_model(folder / "int8.xml", "CPU", options).create_infer_request()
    request.set_input_tensor(openvino.Tensor(example.numpy(), shared_memory=True))
    libraries = Path(openvino.__file__).parent / "libs"
    needed = [
        path for name in ("openvino.so*", "openvino_intel_cpu*", "openvino_ir_frontend*", "tbb.so*")
        for path in libraries.glob(f"lib{name}") if not path.is_symlink()
    ]  # fmt: skip
    return Engine(request.infer, _size([folder / "int8.xml", folder / "int8.bin"]), _size(needed))


def _module(name: str) -> Any:
    return importlib.import_module(name)


def _as_inputs(sample: Any) -> dict[str, Any]:
    return {"input": sample.numpy()}


def _size(paths: Any) -> int:
    return sum(path.stat().st_size for path in paths)


ENGINES: dict[str, tuple[Callable[[Any, Any, Path], Engine], tuple[str, ...]]] = {
    "qcomp": (_qcomp, ()),
    "onnxruntime": (_onnx_runtime, ("onnx", "onnxscript", "onnxruntime")),
    "openvino": (_openvino, ("onnx", "onnxscript", "openvino", "nncf")),
}
"""Engine -> how to make a network ready for it, and the packages that takes."""
