# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reader of .pt2 files, the archive of torch.export.save, without torch and without unpickling.

The schema is torch's ``torch/_export/serde/schema.py``, major version 8; fields that a newer minor version adds are
ignored, as torch itself does.
"""

from __future__ import annotations

from pathlib import Path

from qcomp.errors import QcompError
from qcomp.frontend.archive import Archive
from qcomp.frontend.checked_json import as_int, as_list, as_object, as_text, as_union, malformed
from qcomp.frontend.graph import Argument, Constant, Graph, Input, Mutation, Ref, SymbolRange
from qcomp.frontend.guard_text import input_sources, read_guards
from qcomp.frontend.pt2_graph import read_argument, read_example, read_nodes, read_values
from qcomp.frontend.pt2_tensors import Payloads
from qcomp.frontend.pytree import Tree, parse_treespec

SCHEMA_MAJOR = 8


def read_pt2(path: str | Path) -> Graph:
    """The program in the .pt2 file at `path`.

    Raises QcompError when it is missing, damaged, of another format or schema version, or holds several models.
    """
    archive = Archive(Path(path))
    if archive.text("archive_format") != "pt2":
        raise archive.error("is not a .pt2 archive", hint="expected a file written by torch.export.save")
    if (version := archive.text("archive_version", "0")) != "0":
        raise archive.error(f"has archive version {version}, qcomp reads 0", code="newer-schema")
    if archive.text("byteorder", "little") != "little":
        raise archive.error("was written on a big-endian machine", code="unsupported-byteorder")
    name = _model_name(archive)
    program = as_object(archive.json(f"models/{name}.json"), "the program")
    _check_version(archive, program)
    return _program(program, Payloads(archive, name))


def _model_name(archive: Archive) -> str:
    names = [
        record.removeprefix("models/").removesuffix(".json")
        for record in archive.records
        if record.startswith("models/") and record.endswith(".json")
    ]
    if "model" in names or len(names) == 1:
        return "model" if "model" in names else names[0]
    if names:
        raise archive.error(f"holds several models: {', '.join(sorted(names)[:8])}", hint="save one model per file")
    raise archive.error("holds no exported program", hint="expected a file written by torch.export.save")


def _check_version(archive: Archive, program: dict[str, object]) -> None:
    version = as_object(program.get("schema_version"), "schema_version")
    major, minor = as_int(version.get("major"), "major version"), as_int(version.get("minor"), "minor version")
    if major == SCHEMA_MAJOR:
        return
    writer = str(program.get("torch_version", "unknown"))[:40]
    newer = major > SCHEMA_MAJOR
    raise archive.error(
        f"has export schema {major}.{minor} (torch {writer}), qcomp reads {SCHEMA_MAJOR}.x",
        code="newer-schema" if newer else "legacy-format",
        hint="update qcomp, or export with torch 2.13" if newer else "export the model again with torch 2.9 or newer",
    )


def _program(program: dict[str, object], payloads: Payloads) -> Graph:
    module = as_object(program.get("graph_module"), "graph_module")
    body = as_object(module.get("graph"), "graph")
    signature = as_object(module.get("signature"), "signature")
    values = read_values(body)
    inputs, constants = _inputs(body, signature, payloads)
    outputs, mutations = _outputs(body, signature)
    in_tree, out_tree, names = _structure(module)
    texts = [(as_text(text, "guard"), "") for text in as_list(program.get("guards_code", []), "guards_code")]
    return Graph(
        inputs=inputs,
        outputs=outputs,
        nodes=read_nodes(body),
        values=values,
        constants=constants,
        mutations=mutations,
        ranges=_ranges(program),
        guards=read_guards(texts, input_sources(inputs, values, in_tree, names)),
        example=read_example(body),
        in_tree=in_tree,
        out_tree=out_tree,
        argument_names=names,
    )


def _inputs(
    body: dict[str, object], signature: dict[str, object], payloads: Payloads
) -> tuple[tuple[Input, ...], dict[str, Constant]]:
    specs = as_list(signature.get("input_specs"), "input_specs")
    arguments = as_list(body.get("inputs"), "graph inputs")
    if len(specs) != len(arguments):
        raise malformed("inputs and their specifications differ in number")
    inputs, constants = list[Input](), dict[str, Constant]()
    for index, (spec, argument) in enumerate(zip(specs, arguments, strict=True)):
        kind, content = as_union(spec, "input spec")
        entry = as_object(content, "input spec")
        value = read_argument(argument, 0)
        if kind in ("user_input", "constant_input"):
            given = entry.get("name")
            name = value.name if isinstance(value, Ref) else given if isinstance(given, str) else f"arg{index}"
            inputs.append(Input(name, value))
        elif kind in ("parameter", "buffer", "tensor_constant") and isinstance(value, Ref):
            constants[value.name] = _constant(kind, entry, payloads)
        else:
            raise QcompError(
                f"the program takes a {kind.replace('_', ' ')}, which is not supported",
                code="unsupported-input",
                hint="only tensors, numbers and nested structures of them can be inputs",
            )
    return tuple(inputs), constants


def _constant(kind: str, entry: dict[str, object], payloads: Payloads) -> Constant:
    name = as_text(entry.get(f"{kind}_name"), f"name of a {kind}")
    persistent = kind != "buffer" or bool(entry.get("persistent", True))
    kind = kind.removeprefix("tensor_")
    return Constant(name, kind, payloads.tensor(name, stored_in_weights=kind != "constant" and persistent), persistent)


_MUTATIONS = {
    "buffer_mutation": ("buffer", "buffer_name"),
    "parameter_mutation": ("parameter", "parameter_name"),
    "user_input_mutation": ("input", "user_input_name"),
}


def _outputs(
    body: dict[str, object], signature: dict[str, object]
) -> tuple[tuple[Argument, ...], tuple[Mutation, ...]]:
    specs = as_list(signature.get("output_specs"), "output_specs")
    arguments = as_list(body.get("outputs"), "graph outputs")
    if len(specs) != len(arguments):
        raise malformed("outputs and their specifications differ in number")
    outputs, mutations = list[Argument](), list[Mutation]()
    for spec, argument in zip(specs, arguments, strict=True):
        kind, content = as_union(spec, "output spec")
        value = read_argument(argument, 0)
        if kind == "user_output":
            outputs.append(value)
        elif kind in _MUTATIONS and isinstance(value, Ref):
            target, field = _MUTATIONS[kind]
            entry = as_object(content, "output spec")
            mutations.append(Mutation(target, as_text(entry.get(field), field), value))
        else:
            raise QcompError(
                f"the program returns a {kind.replace('_', ' ')}, which is not supported",
                code="unsupported-output",
                hint="export the model for inference, without a loss",
            )
    return tuple(outputs), tuple(mutations)


def _structure(module: dict[str, object]) -> tuple[Tree | None, Tree | None, tuple[str, ...]]:
    """Input and output structure and the names of forward's arguments, from the call signature of the root module."""
    entries = [
        as_object(entry, "module call") for entry in as_list(module.get("module_call_graph", []), "module calls")
    ]
    root = next((entry for entry in entries if entry.get("fqn") == ""), None)
    if root is None or root.get("signature") is None:
        return None, None, ()
    signature = as_object(root["signature"], "call signature")
    fields = {
        name: [as_text(field, "field name") for field in as_list(as_object(entry, name).get("field_names"), name)]
        for name, entry in as_object(module.get("treespec_namedtuple_fields", {}), "named tuples").items()
    }
    names = signature.get("forward_arg_names")
    return (
        parse_treespec(as_text(signature.get("in_spec"), "in_spec"), fields),
        parse_treespec(as_text(signature.get("out_spec"), "out_spec"), fields),
        tuple(as_text(name, "argument name") for name in as_list([] if names is None else names, "argument names")),
    )


def _ranges(program: dict[str, object]) -> dict[str, SymbolRange]:
    ranges = dict[str, SymbolRange]()
    for name, entry in as_object(program.get("range_constraints", {}), "range_constraints").items():
        bounds = as_object(entry, "range")
        low, high = (bounds.get(key) for key in ("min_val", "max_val"))
        ranges[name] = SymbolRange(*(None if bound is None else as_int(bound, "bound") for bound in (low, high)))
    return ranges
