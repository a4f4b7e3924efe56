"""croissant.json: the description of a benchmark in the Croissant format of MLCommons."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from counterfoil.benchmark.benchmark_json import BenchmarkRecord, FileNote
from counterfoil.benchmark.layouts import DATA
from counterfoil.benchmark.manifest import COLUMNS, SHOWN_COLUMNS
from counterfoil.store.files import MANIFEST
from counterfoil.store.parquet import Kind

CROISSANT = "croissant.json"
_SPECIFICATION = "http://mlcommons.org/croissant/1.0"
_TERMS = (
    "citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty", "fileSet", "format",
    "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex",
    "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform",
)  # fmt: skip
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    **{term: f"cr:{term}" for term in _TERMS},
}
_TYPES: dict[Kind, str] = {
    "text": "sc:Text", "int": "sc:Integer", "unsigned": "sc:Integer", "float": "sc:Float", "double": "sc:Float",
    "bool": "sc:Boolean",
}  # fmt: skip
_FORMATS = {"parquet": "application/x-parquet", "tar": "application/x-tar"}
_PICTURES = {
    "folder": {
        "description": "One PNG file per picture.", "encodingFormat": "image/png", "includes": f"{DATA}/**/*.png",
    },
    "parquet": {
        "description": "The pictures in Parquet files.", "encodingFormat": _FORMATS["parquet"],
        "includes": f"{DATA}/*.parquet",
    },
}  # fmt: skip


def render_croissant(record: BenchmarkRecord, files: Mapping[str, FileNote]) -> str:
    """Return the description; `files` are the benchmark's files so far, including manifest and shards."""
    about: dict[str, Any] = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": _SPECIFICATION,
        "name": record.name,
        "version": record.version,
        "description": record.description or f"{record.name}, a benchmark for image classifiers",
        "license": list(record.licences),
        "citeAs": f"{record.name} {record.version}{f', {record.url}' if record.url else ''}",
        "isLiveDataset": False,
        "distribution": _distribution(record, files),
        "recordSet": _record_sets(record),
    }
    optional = {"url": record.url, "datePublished": record.published}
    about |= {name: text for name, text in optional.items() if text}
    return json.dumps(about, indent=1, ensure_ascii=False)


def _distribution(record: BenchmarkRecord, files: Mapping[str, FileNote]) -> list[dict[str, Any]]:
    """The manifest and the shards; tar files are listed without their contents.

    mlcroissant caches unpacked files by file name alone, so it would show one benchmark's data/test-00000.tar for all.
    """
    shards = sorted(name for name in files if name.startswith(f"{DATA}/") and name.rsplit(".", 1)[-1] in _FORMATS)
    parts = [_file(name, files[name]) for name in (MANIFEST, *shards)]
    if record.layout in _PICTURES:
        parts.append({"@type": "cr:FileSet", "@id": "pictures", "name": "pictures", **_PICTURES[record.layout]})
    return parts


def format_size(note: FileNote) -> str:
    """The size of a file as Croissant writes it."""
    return f"{note.size} B"


def _file(name: str, note: FileNote) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": name, "contentSize": format_size(note),
        "encodingFormat": _FORMATS[name.rsplit(".", 1)[-1]], "sha256": note.sha256,
    }  # fmt: skip


def _record_sets(record: BenchmarkRecord) -> list[dict[str, Any]]:
    """The manifest's rows, and the pictures where they are files or bytes in a column."""
    rows = [
        _field("manifest", name, _TYPES[kind], {"fileObject": {"@id": MANIFEST}, "extract": {"column": name}})
        for name, kind in COLUMNS.items()
    ]
    sets = [_record_set("manifest", "Every picture with its provenance.", rows)]
    if record.layout in _PICTURES:
        fields = _columns() if record.layout == "parquet" else _properties()
        sets.append(_record_set("images", f"Every picture with its {fields[0]['name']}, as in the manifest.", fields))
    return sets


def _properties() -> list[dict[str, Any]]:
    """The fields of pictures stored as files."""
    parts = (("file", "sc:Text", "fullpath"), ("image", "sc:ImageObject", "content"))
    return [
        _field("images", name, kind, {"fileSet": {"@id": "pictures"}, "extract": {"fileProperty": part}})
        for name, kind, part in parts
    ]


def _columns() -> list[dict[str, Any]]:
    """The fields of pictures stored as bytes in a column, with the text columns beside them."""
    texts = [
        _field("images", name, "sc:Text", {"fileSet": {"@id": "pictures"}, "extract": {"column": name}})
        for name in ("id", *(name for name in SHOWN_COLUMNS if name != "id"))
    ]
    content = {"extract": {"column": "image"}, "transform": {"jsonPath": "bytes"}}
    return [*texts, _field("images", "image", "sc:ImageObject", {"fileSet": {"@id": "pictures"}, **content})]


def _record_set(name: str, description: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "description": description, "field": fields}


def _field(of: str, name: str, kind: str, source: Mapping[str, Any]) -> dict[str, Any]:
    return {"@type": "cr:Field", "@id": f"{of}/{name}", "name": name, "dataType": kind, "source": source}
