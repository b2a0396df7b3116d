# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is installed, what is imported, and what the source tree may contain."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "qcomp"
SOURCES = sorted(path for path in PACKAGE.rglob("*.py"))
CORE = {"immutabledict", "numpy", "ordered-set", "qcomp", "typing-extensions", "xdsl"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def tracked() -> list[str]:
    """The files under version control; those of the source folder where there is none."""
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() or [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.fixture(scope="module")
def source_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and of what builds it, with the two links on top in place."""
    copy = tmp_path_factory.mktemp("source") / "copy"
    shutil.copytree(PACKAGE, copy / "qcomp", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in ("dialects", "transforms"):
        (copy / name).symlink_to(f"qcomp/{name}")
    return copy


def test_wheel_holds_only_the_package(source_copy: Path, tmp_path: Path) -> None:
    options = ["-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    command = [sys.executable, "-m", "pip", "wheel", *options, "."]
    subprocess.run(command, cwd=source_copy, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0].split("-")[0] for name in names} == {"qcomp"}
    package = {name for name in names if name.startswith("qcomp/")}
    inside = [path for path in (source_copy / "qcomp").rglob("*") if path.is_file()]
    assert package == {str(path.relative_to(source_copy)) for path in inside}
    assert "qcomp/py.typed" in package


def test_editable_install_is_a_plain_path(source_copy: Path, tmp_path: Path) -> None:
    """Editors and type checkers read a .pth file that holds a path; they don't run one that installs a finder."""
    code = f"import setuptools.build_meta as backend; print(backend.build_editable({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", code], cwd=source_copy, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (pth,) = [name for name in archive.namelist() if name.endswith(".pth")]
        assert archive.read(pth).decode().strip() == str(source_copy)


def test_core_needs_xdsl_and_numpy_only() -> None:
    found: set[str] = set()
    todo = ["qcomp"]
    while todo:
        name = canonical(todo.pop())
        if name in found:
            continue
        found.add(name)
        todo += [re.split(r"[^\w.-]", need)[0] for need in requires(name) or [] if "extra ==" not in need]
    assert found == CORE


@pytest.fixture(scope="module")
def core_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose Python sees the core dependencies and the package, nothing else."""
    folder = tmp_path_factory.mktemp("core")
    for name in sorted(CORE - {"qcomp"}):
        for file in distribution(name).files or []:
            top = Path(file).parts[0]
            if not top.startswith(".") and not (folder / top).exists():
                (folder / top).symlink_to(Path(str(distribution(name).locate_file(top))))
    (folder / "qcomp").symlink_to(PACKAGE)
    return {**os.environ, "PYTHONPATH": str(folder)}


def python(code: str, environment: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `code` in a Python without site-packages."""
    return subprocess.run([sys.executable, "-S", "-c", code], env=environment, cwd=cwd, capture_output=True, text=True)


def test_core_works_without_extras(core_environment: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import qcomp\nfor name in qcomp.__all__: getattr(qcomp, name)\n"
        "from qcomp.cli import opt, main\nassert opt.main(['--version']) == 0\nassert main.main(['passes']) == 0\n"
        "try: import torch\nexcept ImportError: print('no torch')"
    )
    done = python(code, core_environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("no torch\n")


def test_import_is_light(tmp_path: Path) -> None:
    code = "import sys, qcomp\nprint(sorted({'numpy', 'torch', 'xdsl'} & set(sys.modules)), qcomp.__version__)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"[] {distribution('qcomp').version}\n"


def test_modules_import_without_torch(core_environment: dict[str, str], tmp_path: Path) -> None:
    """All but those that work on torch's own objects."""
    names: list[str] = []
    for path in SOURCES:
        top = {
            line.split()[1] for line in path.read_text().splitlines() if line.startswith(("import torch", "from torch"))
        }
        if not top:
            names.append(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    code = f"import importlib\nfor name in {names!r}: importlib.import_module(name)"
    done = python(code, core_environment, tmp_path)
    assert done.returncode == 0, done.stderr


def test_exported_program_runs_without_torch(core_environment: dict[str, str], tmp_path: Path) -> None:
    import torch

    net = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(60, 4))
    torch.export.save(torch.export.export(net.eval(), (torch.randn(1, 2, 6, 7),)), tmp_path / "net.pt2")
    code = (
        "from qcomp.cli.main import main\n"
        "assert main(['run', 'net.pt2', '--random', '3']) == 0\n"
        "assert main(['compile', 'net.pt2', '-o', 'out']) == 0\n"
        "assert main(['run', 'out', '--random', '3']) == 0"
    )
    done = python(code, core_environment, tmp_path)
    assert done.returncode == 0 and done.stdout.count("float32[1, 4]") == 2, done.stderr


def test_links_on_top() -> None:
    for name in ("dialects", "transforms"):
        assert os.readlink(ROOT / name) == f"qcomp/{name}"


def test_constraints_pin_every_dependency() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    pinned = {canonical(line.split("==")[0]) for line in lines}
    extras = PROJECT["project"]["optional-dependencies"]
    needs = [*PROJECT["project"]["dependencies"], *extras["torch"], *extras["dev"]]
    assert {canonical(re.split(r"[^\w.-]", need)[0]) for need in needs} <= pinned
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines)


def test_universe_offers_no_name_of_xdsl() -> None:
    from xdsl.universe import XDSL_UNIVERSE

    from qcomp.cli.universe import QCOMP_UNIVERSE

    for kind in ("all_dialects", "all_passes", "all_targets"):
        assert not set(getattr(QCOMP_UNIVERSE, kind)) & set(getattr(XDSL_UNIVERSE, kind))


def test_xdsl_opt_sees_our_dialects(tmp_path: Path) -> None:
    (tmp_path / "in.mlir").write_text("func.func private @f(tensor<2x!quant.uniform<i8:f32, 0.5:3>>) -> ()\n")
    command = [str(Path(sys.executable).parent / "xdsl-opt"), "in.mlir"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "!quant.uniform<i8:f32, 0.5:3>" in done.stdout, done.stderr


RANKS = {
    "errors": 0, "limits": 0, "progress": 0, "reading": 0, "refusals": 0, "suggestions": 0, "writing": 0,
    "dialects": 1, "interpreter": 2, "frontend": 3, "transforms": 3, "backend": 3, "cli": 4,
}  # fmt: skip


def imports(path: Path) -> list[tuple[int, str]]:
    """(line, module) of every import of a file, also of those in functions."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            found.append((node.lineno, node.module or ""))
    return found


def test_layers_import_downwards() -> None:
    wrong: list[str] = []
    for path in SOURCES:
        layer = path.relative_to(PACKAGE).with_suffix("").parts[0]
        for line, module in imports(path):
            parts = module.split(".")
            upwards = parts[0] == "qcomp" and len(parts) > 1 and RANKS[parts[1]] > RANKS.get(layer, 9)
            # QcompError.at words the location of an op.
            if upwards and (layer, module) != ("errors", "qcomp.dialects.location"):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {module}")
    assert not wrong, "\n".join(wrong)


def test_torch_is_imported_by_the_frontend_and_the_torch_evaluator_only() -> None:
    wrong: list[str] = []
    for path in SOURCES:
        inside = path.relative_to(PACKAGE)
        if inside.parts[0] == "frontend" or inside.stem.startswith("torch_"):
            continue
        wrong += [f"{inside}:{line}" for line, module in imports(path) if module.split(".")[0] in ("torch", "torchao")]
    assert not wrong, "\n".join(wrong)


def test_sources_have_a_licence_line_and_a_docstring() -> None:
    header = "# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
    python_files = [ROOT / name for name in tracked() if name.endswith(".py")]
    for path in {*SOURCES, *python_files}:
        text = path.read_text()
        assert text.startswith(header), f"{path}: no licence line"
        assert ast.get_docstring(ast.parse(text)), f"{path}: no module docstring"


def test_no_drawers_and_moderate_files() -> None:
    lengths = sorted(len(path.read_text().splitlines()) for path in SOURCES)
    assert lengths[len(lengths) // 2] < 150 and lengths[len(lengths) * 9 // 10] < 400, lengths[-10:]
    assert not [path for path in SOURCES if path.stem in ("utils", "helpers", "misc", "common")]


def test_functions_are_short() -> None:
    long: list[str] = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.end_lineno and node.end_lineno - node.lineno >= 40:
                long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name}: {node.end_lineno - node.lineno + 1}")
    assert not long, "\n".join(long)


def test_nothing_unfinished() -> None:
    words = re.compile("raise NotImplemented" + "|TO" + "DO|FIX" + "ME|X" + "XX")
    found = [f"{path}" for path in SOURCES if words.search(path.read_text())]
    assert not found, found


def test_no_registry_is_named() -> None:
    hosts = re.compile("py" + r"pi\.(org|python)|python" + r"hosted|download\.py" + r"torch|--(extra-)?index-url")
    for name in tracked():
        path = ROOT / name
        if path.is_file() and path.suffix in (".py", ".toml", ".txt", ".md", ".cfg", ""):
            assert not hosts.search(path.read_text(errors="replace")), name


def test_plugins_add_dialects_and_passes_everywhere(tmp_path: Path) -> None:
    """A package of its own, installed, adds a dialect and a pass to qcomp-opt and to the API; a broken one warns."""
    (tmp_path / "mychip.py").write_text(
        "from dataclasses import dataclass\n"
        "from xdsl.universe import Universe\nfrom xdsl.ir import Dialect\nfrom xdsl.passes import ModulePass\n"
        "from xdsl.irdl import IRDLOperation, irdl_op_definition\n\n"
        "@irdl_op_definition\nclass NopOp(IRDLOperation):\n    name = 'mychip.nop'\n    assembly_format = 'attr-dict'\n"
        "@dataclass(frozen=True)\nclass DropNops(ModulePass):\n    name = 'mychip-drop-nops'\n"
        "    def apply(self, ctx, op):\n        for nop in list(op.walk()):\n"
        "            if isinstance(nop, NopOp):\n                nop.detach()\n                nop.erase()\n\n"
        "ALL = Universe(all_dialects={'mychip': lambda: Dialect('mychip', [NopOp])},\n"
        "               all_passes={'mychip-drop-nops': lambda: DropNops})\n"
    )
    info = tmp_path / "mychip-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mychip\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[xdsl.universe]\nmychip = mychip:ALL\nbroken = nosuch_module:ALL\n")
    code = (
        "import qcomp\nfrom qcomp.cli import opt\n"
        "module = qcomp.parse('func.func @main() {\\n  mychip.nop\\n  func.return\\n}')\n"
        "assert 'mychip.nop' in str(module)\nqcomp.run_passes(module, 'mychip-drop-nops')\n"
        "assert 'mychip.nop' not in str(module)\nopt.main(['--help'])"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mychip-drop-nops" in done.stdout
    assert done.stderr.startswith("warning: plug-in 'broken' (nosuch_module:ALL) cannot be loaded")


BROKEN_PLUGIN = {
    "badchip.py": """
import importlib
from dataclasses import dataclass
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.passes import ModulePass
from xdsl.universe import Universe

@irdl_op_definition
class MoodyOp(IRDLOperation):
    name = "badchip.moody"
    assembly_format = "attr-dict"

    def verify_(self):
        raise TypeError("no good")

@dataclass(frozen=True)
class Silent(ModulePass):
    \"\"\"Says nothing about numbers.\"\"\"
    name = "badchip-silent"

    def apply(self, ctx, op):
        raise KeyError("lost")

ALL = Universe(
    all_dialects={
        "badchip": lambda: Dialect("badchip", [MoodyOp]),
        "badops": lambda: importlib.import_module("badchip_ops").DIALECT,
    },
    all_passes={"badchip-silent": lambda: Silent, "badchip-lost": lambda: importlib.import_module("badchip_ops").PASS},
)
""",
    "badchip_ops.py": """
from xdsl.irdl import IRDLOperation, irdl_op_definition

@irdl_op_definition
class WrongOp(IRDLOperation):
    name = "badops.wrong"
    size = 5
""",
    "badchip-3.dist-info/METADATA": "Metadata-Version: 2.1\nName: badchip\nVersion: 3\n",
    "badchip-3.dist-info/entry_points.txt": "[xdsl.universe]\nbadchip = badchip:ALL\nworse = badchip_ops:ALL\n",
    "wrong.mlir": "badops.wrong\n",
    "moody.mlir": "badchip.moody\n",
    "empty.mlir": "builtin.module {\n}\n",
}


def test_broken_plugins_are_named_and_everything_else_works(tmp_path: Path) -> None:
    """Plug-in, distribution and class are in the message; lists and other programs survive."""
    for name, text in BROKEN_PLUGIN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    code = (
        "import sys\nfrom qcomp.cli.main import main\nfrom qcomp.cli import opt\n"
        "for tool, line in ((main, 'passes'), (main, 'passes badchip-silent'), (main, 'targets'),\n"
        "                   (opt.main, 'empty.mlir'), (opt.main, 'wrong.mlir'), (opt.main, 'moody.mlir'),\n"
        "                   (opt.main, 'empty.mlir -p badchip-lost'), (opt.main, 'empty.mlir -p badchip-silent')):\n"
        "    print('==', line, file=sys.stderr, flush=True)\n"
        "    print('exit', tool(line.split()), file=sys.stderr, flush=True)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, cwd=tmp_path)
    found = {part.split("\n")[0].strip(): part for part in done.stderr.split("== ")[1:]}
    assert len(found) == 8, done.stderr
    class_ = "class WrongOp (badchip_ops.py:4): PyRDLOpDefinitionError: WrongOp.size is neither"
    listed = found["passes"].splitlines()[1:]
    shipped = "from distribution badchip 3: "
    assert listed[0].startswith(f"warning: plug-in 'worse' (badchip_ops:ALL) cannot be loaded {shipped}")
    assert class_ in listed[0] and len(listed) == 3 and listed[2] == "exit 0"
    assert listed[1].startswith("warning: plug-in 'badchip' (badchip:ALL) cannot load its pass 'badchip-lost' from ")
    assert "badchip-silent          undeclared  Says nothing about numbers." in done.stdout
    assert "badchip-silent (undeclared)" in done.stdout and "generic" in done.stdout
    for line in ("passes badchip-silent", "targets", "empty.mlir"):
        assert found[line].splitlines()[1:] == ["exit 0"], line
    wrong = found["wrong.mlir"]
    assert f"1:1: error: plug-in 'badchip' (badchip:ALL) cannot load its dialect 'badops' {shipped}" in wrong
    assert class_ in wrong and "exit 1" in wrong
    moody = f"error: plug-in 'badchip' (badchip:ALL) {shipped}class MoodyOp (badchip.py:15): TypeError: no good"
    assert moody in found["moody.mlir"]
    assert class_ in found["empty.mlir -p badchip-lost"]
    silent = found["empty.mlir -p badchip-silent"]
    assert "class Silent (badchip.py:23): KeyError: 'lost'" in silent and "pass badchip-silent: " in silent
    assert "Traceback" not in done.stderr and "internal error" not in done.stderr
