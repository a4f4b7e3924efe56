"""What the package promises as a package: light, documented, whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import counterfoil as cf
from command_line import find_command, subcommands
from counterfoil.assets.cache import cache_folder, fetch_asset
from counterfoil.assets.embedded_networks import build_onnx_file
from counterfoil.cli import GROUPS, PLACES, commands
from counterfoil.edits.registry import OURS
from counterfoil.plugins import import_extra
from counterfoil.recipes.edit_recipe import list_recipes, load_recipe
from locations import HELPERS, ROOT


def test_importing_counterfoil_loads_no_heavy_package_and_little_else() -> None:
    code = (
        "import sys; before = set(sys.modules); import counterfoil; loaded = set(sys.modules) - before\n"
        "print({name.partition('.')[0] for name in loaded} - sys.stdlib_module_names, len(loaded) < 60)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'counterfoil'} True"


@pytest.mark.parametrize(
    "code",
    [
        "from counterfoil.cli import commands; commands(['run', '--help'], standalone_mode=False)",
        "import numpy; from counterfoil.models.model_loaders import load_model;"
        " load_model('embedded:efficientnet-lite0')([numpy.zeros((300, 300, 3), numpy.uint8)])",
    ],
)
def test_help_and_networks_in_the_cache_do_without_the_onnx_package(code: str) -> None:
    build_onnx_file("efficientnet-lite0", fetch_asset, cache_folder())  # converted before, which needs it
    code += "; import sys; print('\\nonnx loaded:', 'onnx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("onnx loaded: False\n")


@pytest.mark.parametrize("name", cf.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(cf, name) is not None


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        cf.runn  # type: ignore[attr-defined]  # noqa: B018


def test_the_core_asks_for_nothing_heavy() -> None:
    core = [re.split(r"[<>=;\[ ]", line)[0] for line in requires("counterfoil") or [] if "extra ==" not in line]
    assert not {"torch", "scipy", "pandas", "ray"} & set(core)


def test_the_commands_load_pyarrow_only_for_tables() -> None:
    modules = ", ".join(
        {f"counterfoil.cli.{place.module}" for place in PLACES.values()} | {"counterfoil.cli.part_commands"}
    )
    code = f"import sys, {modules}; print('counterfoil.store.parquet' in sys.modules, 'pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


@pytest.mark.parametrize("argument", ["--help", "version", "--version"])
def test_help_and_version_load_no_heavy_package(argument: str) -> None:
    code = (
        f"import sys; sys.argv = ['counterfoil', '{argument}']\nfrom counterfoil.cli import main\n"
        "try: main()\nfinally: print({'numpy', 'cv2', 'onnxruntime', 'pyarrow'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout
    assert done.stderr == "set()\n"


@pytest.mark.parametrize("path", [*PLACES, *(f"{group} {name}" for group in GROUPS for name in GROUPS[group].places)])
def test_the_summary_in_the_table_of_commands_is_the_commands_own(path: str) -> None:
    first, *rest = path.split()
    place = GROUPS[first].places[rest[0]] if rest else PLACES[first]
    assert find_command(first, *rest).get_short_help_str(limit=1000) == place.summary


def _documented(command: click.Command, path: str) -> list[str]:
    if isinstance(command, click.Group):
        return [name for sub, child in subcommands(command).items() for name in _documented(child, f"{path} {sub}")]
    return [path]


@pytest.mark.parametrize("path", _documented(commands, "counterfoil"))
def test_every_command_is_documented(path: str) -> None:
    assert path in (ROOT / "docs" / "commands.md").read_text()


@pytest.mark.parametrize("path", _documented(commands, "counterfoil"))
def test_every_option_is_documented_and_helps_itself(path: str) -> None:
    command = find_command(*path.split()[1:])
    text = (ROOT / "docs" / "commands.md").read_text()
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, f"{path} {option.opts[0]} has no help"
            assert option.opts[0] in text, f"{path} {option.opts[0]} is not documented"


def test_a_missing_package_is_told_with_the_command_for_a_clone_too() -> None:
    with pytest.raises(
        cf.UserError, match=r"pip install 'counterfoil\[torch\]' \(from a clone: pip install '\.\[torch\]'\)$"
    ):
        import_extra("a_package_that_is_not_there", "torch")


@pytest.mark.parametrize("group", [[], ["verify"], ["models"], ["shards"]])
def test_summaries_of_commands_are_told_in_full(group: list[str]) -> None:
    told = CliRunner().invoke(commands, [*group, "--help"], catch_exceptions=False).output
    assert "..." not in told.split("Options:")[1]  # the commands follow, by stage or in one list


def test_the_version_is_told_by_command_and_by_option() -> None:
    said = {CliRunner().invoke(commands, [word]).output for word in ("version", "--version")}
    assert said == {f"{cf.__version__}\n"}


def test_package_metadata_and_citation_have_one_version() -> None:
    places = {"pyproject.toml": r'^version = "(.+)"$', "CITATION.cff": r"^version: (.+)$"}
    for file, pattern in places.items():
        assert re.findall(pattern, (ROOT / file).read_text(), re.MULTILINE) == [cf.__version__]


@pytest.mark.parametrize("what", ["edits", "recipes", "models", "painters", "sources"])
def test_lists_keep_their_column(what: str) -> None:
    lines = CliRunner().invoke(commands, ["list", what], catch_exceptions=False).output.splitlines()
    column = max(len(line.split("  ")[0]) for line in lines) + 2
    assert all(line[column - 2 : column] == "  " and line[column] != " " for line in lines)


@pytest.mark.parametrize("name", OURS)
def test_every_edit_is_documented_and_has_a_picture_in_the_gallery(name: str) -> None:
    assert f"`{name}`" in (ROOT / "docs" / "edit.md").read_text()
    gallery = (ROOT / "docs" / "gallery" / "README.md").read_text()
    assert f"## {name}" in gallery
    assert list((ROOT / "docs" / "gallery").glob(f"{name}*.jpg"))


@pytest.mark.parametrize("name", list_recipes())
def test_every_recipe_is_documented_loads_and_has_a_control(name: str) -> None:
    assert f"**{name}**" in (ROOT / "docs" / "recipes.md").read_text()
    recipe = load_recipe(name)
    assert recipe.about
    assert any(step.edit == "control" for step in recipe.edits)


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_code_of_the_readme_runs(tmp_path: Path) -> None:
    from planted import write_photos

    write_photos(tmp_path, 4)
    (tmp_path / "photos").symlink_to(tmp_path / "images")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    code = "\n".join(blocks).replace("embedded:efficientnet-lite0", "python:planted:honest")
    path = os.pathsep.join([str(HELPERS), os.environ.get("PYTHONPATH", "")])
    environment = {"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "COUNTERFOIL_MIGAN": "none"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report" / "report.html").is_file()


def test_links_of_the_readme_are_absolute_on_a_package_index(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1.2.0"\n[project.urls]\nSource = "https://example.org/x/"\n'
    )
    (tmp_path / "README.md").write_text((ROOT / "README.md").read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run([sys.executable, ROOT / "docs" / "site" / "readme_links.py"], cwd=tmp_path, check=True)
    written = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "![The top of a report" in written
    assert "(https://example.org/x/raw/v1.2.0/docs/figures/report.png)" in written
    assert "(https://example.org/x/blob/v1.2.0/docs/benchmarks.md)" in written
    assert re.findall(r"\]\((?!https://)[^)]*\)", written) == []


def test_a_release_without_an_address_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "1.2.0"\n')
    call = [sys.executable, str(ROOT / "docs" / "site" / "readme_links.py")]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("expected an address named Source")
