"""croissant.json: the benchmark as search engines and loaders of the Croissant format read it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from counterfoil.freeze.entries import COLUMNS, MANIFEST
from counterfoil.freeze.layouts import DATA
from counterfoil.freeze.record import FileNote, Record
from counterfoil.store import Kind

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


def croissant(record: Record, files: Mapping[str, FileNote]) -> str:
    """The description; `files` are those of the benchmark that exist so far, among them manifest and shards."""
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
    told = {"url": record.url, "datePublished": record.published}
    return json.dumps({**about, **{name: text for name, text in told.items() if text}}, indent=1, ensure_ascii=False)


def _distribution(record: Record, files: Mapping[str, FileNote]) -> list[dict[str, Any]]:
    shards = [name for name in files if name.startswith(f"{DATA}/") and name.rsplit(".", 1)[-1] in _FORMATS]
    found = [_file(name, files[name]) for name in (MANIFEST, *sorted(shards))]
    if record.layout == "folder":
        found.append({
            "@type": "cr:FileSet", "@id": "pictures", "name": "pictures", "description": "One PNG file per picture.",
            "encodingFormat": "image/png", "includes": f"{DATA}/**/*.png",
        })  # fmt: skip
    return found


def _file(name: str, note: FileNote) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject", "@id": name, "name": name, "contentUrl": name, "contentSize": f"{note.size} B",
        "encodingFormat": _FORMATS[name.rsplit(".", 1)[-1]], "sha256": note.sha256,
    }  # fmt: skip


def _record_sets(record: Record) -> list[dict[str, Any]]:
    """The manifest's rows; where pictures are files, the pictures too."""
    rows = [
        _field("manifest", name, _TYPES[kind], {"fileObject": {"@id": MANIFEST}, "extract": {"column": name}})
        for name, kind in COLUMNS.items()
    ]
    sets = [_record_set("manifest", "Every picture with its provenance.", rows)]
    if record.layout == "folder":
        parts = (("file", "sc:Text", "fullpath"), ("image", "sc:ImageObject", "content"))
        fields = [
            _field("images", name, kind, {"fileSet": {"@id": "pictures"}, "extract": {"fileProperty": part}})
            for name, kind, part in parts
        ]
        sets.append(_record_set("images", "Every picture with its path.", fields))
    return sets


def _record_set(name: str, description: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "description": description, "field": fields}


def _field(of: str, name: str, kind: str, source: Mapping[str, Any]) -> dict[str, Any]:
    return {"@type": "cr:Field", "@id": f"{of}/{name}", "name": name, "dataType": kind, "source": source}
