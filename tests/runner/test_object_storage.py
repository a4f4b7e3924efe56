"""Photos, workspaces and run folders on a real S3 server, with calls that fail, and in memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import counterfoil as cf
from counterfoil.cli import commands
from counterfoil.execution import Execution, WorkShard
from counterfoil.run_config import RunConfig
from counterfoil.runner import execute, process_shard
from counterfoil.sources.photo_cache import PhotoCache, open_photo_cache
from counterfoil.sources.source_loaders import open_source
from counterfoil.store import object_storage
from counterfoil.store.folder_mirror import close_folder, open_folder
from counterfoil.store.object_storage import ObjectStorage
from google_server import Bucket, serve_bucket
from hub_server import Hub, serve_hub
from planted import write_photos
from s3_server import CREDENTIALS, fail_calls, put_folder, serve_s3
from table_files import output_bytes

MODEL = "python:planted:Planted"
RECIPE = "working_size: 64\njudge_fills: false\nedits: [{edit: background-swap}, {edit: jpeg}, {edit: grayscale}]\n"
pytestmark = pytest.mark.remote


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of photos of this module alone."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("COUNTERFOIL_CACHE", str(folder))
        yield folder / "photos-from-storage"


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_photos(tmp_path_factory.mktemp("photos"), 6)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("recipe") / "short.yaml"
    path.write_text(RECIPE)
    return str(path)


@pytest.fixture(scope="module")
def expected(photos: tuple[Path, Path], recipe: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The tables and the report of a run over local folders."""
    out = tmp_path_factory.mktemp("expected")
    execute(RunConfig(source=open_source(*photos), models=(MODEL,), recipe=recipe, workers=1), out).report(out)
    return output_bytes(out, [str(photos[0]), str(photos[1])])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An S3 server with two buckets; the environment names it."""
    folder = tmp_path_factory.mktemp("s3")
    with pytest.MonkeyPatch.context() as patch, serve_s3(folder / "log") as address:
        for name, value in {**CREDENTIALS, "AWS_ENDPOINT_URL": address}.items():
            patch.setenv(name, value)
        import boto3

        boto3.client("s3").create_bucket(Bucket="bucket")
        yield address


@pytest.fixture(scope="module")
def stored(server: str, photos: tuple[Path, Path]) -> tuple[str, str]:
    """The photos and masks on the server."""
    for folder, name in zip(photos, ("images", "masks"), strict=True):
        put_folder(folder, f"s3://bucket/{name}")
    return "s3://bucket/images", "s3://bucket/masks"


def run_command(*arguments: object) -> str:
    done = CliRunner().invoke(commands, [str(word) for word in arguments], standalone_mode=False)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output


def download(address: str, out: Path) -> Path:
    import fsspec

    fsspec.filesystem("s3", skip_instance_cache=True).get(f"{address}/", str(out), recursive=True)
    return out


def test_shards_on_s3_with_failing_calls_give_the_same_tables_and_report(
    server: str, stored: tuple[str, str], recipe: str, expected: dict[str, str], tmp_path: Path, cache: Path
) -> None:
    words = ["run", "--images", stored[0], "--masks", stored[1], "--model", MODEL, "--recipe", recipe]
    words += ["--out", "s3://bucket/run"]
    before = fail_calls(server, 5)
    for shard in ("2/3", "1/3", "2/3", "3/3"):
        said = run_command(*words, "--shard", shard)
    assert "counterfoil shards merge s3://bucket/run" in said
    assert "parts: 12 of 12 (100 %)" in run_command("status", "s3://bucket/run")
    said = run_command("merge", "s3://bucket/run")
    assert fail_calls(server, 0) > before
    assert "report: s3://bucket/run/report.html" in said
    out = download("s3://bucket/run", tmp_path / "run")
    assert output_bytes(out, [*stored, "s3://bucket/run"]) == expected
    assert not list(out.rglob("*lock"))
    assert len(list(cache.iterdir())) == 12  # six photos with their masks
    assert "report: s3://bucket/run/report.html" in run_command(*words)  # makes nothing again
    with pytest.raises(cf.UserError, match="own in s3://bucket/run, but it holds a run with another seed"):
        run_command(*words, "--seed", 1)


def test_a_workspace_on_s3_is_evaluated_and_mined_where_it_lies(
    server: str, stored: tuple[str, str], recipe: str
) -> None:
    said = run_command(
        "build", "--images", stored[0], "--masks", stored[1], "--recipe", recipe, "--out", "s3://bucket/space"
    )
    assert "pictures: s3://bucket/space/pictures" in said
    pictures = [file.name for file in ObjectStorage("s3://bucket/space").list_files("pictures")]
    assert len(pictures) == 24
    ObjectStorage("s3://bucket/space").remove(pictures[0])
    ObjectStorage("s3://bucket/space").write("pictures/other.png", b"")
    run_command("build", "--images", stored[0], "--masks", stored[1], "--recipe", recipe, "--out", "s3://bucket/space")
    assert [file.name for file in ObjectStorage("s3://bucket/space").list_files("pictures")] == pictures
    labels = ["azure", "crimson", "emerald", "violet"]
    result = cf.evaluate("s3://bucket/space", {"azure": _say_azure}, "s3://bucket/answers", labels=labels)
    assert len(result.answers.samples) == 6
    result.report("s3://bucket/elsewhere")
    for name in ("answers/variants.parquet", "elsewhere/report.html", "elsewhere/checksums.json"):
        assert ObjectStorage("s3://bucket").exists(name)
    words = ["mine", "s3://bucket/space", "--surrogate", "python:planted:AnswersByBackground", "--original", "none"]
    for shard in ("2/2", "1/2"):
        run_command(*words, "--shard", shard)
    assert "in s3://bucket/space/mined.json" in run_command(*words)
    assert ObjectStorage("s3://bucket/space").exists("mining/mining.html")


def test_a_workspace_is_painted_on_s3_by_shards(server: str) -> None:
    words = ["paint", "--recipe", "imagenet-d", "--painter", "python:painted:words", "--categories", "backpack"]
    words += ["--values", "beach,striped", "--batch-size", "1", "--out", "s3://bucket/painted"]
    run_command(*words, "--shard", "2/2")
    assert "pictures: 3 in s3://bucket/painted/pictures" in run_command(*words)
    before = [file.name for file in ObjectStorage("s3://bucket/painted").list_files()]
    run_command(*words)
    assert [file.name for file in ObjectStorage("s3://bucket/painted").list_files()] == before


def _say_azure(images: list[Any]) -> list[str]:
    return ["azure" for _ in images]


@pytest.mark.parametrize(
    ("images", "said"),
    [
        ("s3://missing/images", "but 'missing' is not there; make it"),
        ("s3://forbidden/images", "it refuses: Access Denied; check the credentials"),
        ("s3://bucket/nothing", "found none; give the address"),
        ("nowhere://bucket/images", "an address that fsspec knows"),
        ("coco:s3://bucket/annotations.json", "are read from local folders only"),
    ],
)
def test_photos_that_cannot_be_had_are_one_line(server: str, images: str, said: str) -> None:
    with pytest.raises(cf.UserError, match=said) as caught:
        open_source(images, None).samples()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("out", ["s3://missing/run", "s3://forbidden/run"])
def test_a_run_folder_that_cannot_be_had_is_one_line(server: str, stored: tuple[str, str], out: str) -> None:
    with pytest.raises(cf.UserError, match=r"is not there; make it|it refuses: Access Denied"):
        run_command("run", "--images", stored[0], "--masks", stored[1], "--model", MODEL, "--out", out)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A server that speaks the Hub's protocol; the client asks it."""
    import fsspec

    object_storage._SYSTEMS.clear()
    with serve_hub() as served:
        monkeypatch.setitem(fsspec.config.conf, "hf", {"endpoint": served.address})
        yield served
    object_storage._SYSTEMS.clear()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A server that speaks Google Cloud Storage's protocol; the client asks it."""
    object_storage._SYSTEMS.clear()
    monkeypatch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")  # another protocol, for zonal buckets
    with serve_bucket() as served:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", served.address)
        yield served
    object_storage._SYSTEMS.clear()


@pytest.mark.parametrize(("kind", "root"), [("hub", "hf://datasets/user/data"), ("bucket", "gs://bucket/data")])
def test_shards_over_other_services_give_the_same_tables_and_report(
    kind: str, root: str, request: pytest.FixtureRequest, photos: tuple[Path, Path], recipe: str,
    expected: dict[str, str], tmp_path: Path,
) -> None:  # fmt: skip
    files: dict[str, bytes] = request.getfixturevalue(kind).files
    below = "" if kind == "hub" else "data/"
    for folder in photos:
        names = {path: f"{below}{folder.name}/{path.relative_to(folder).as_posix()}" for path in folder.rglob("*.png")}
        files |= {name: path.read_bytes() for path, name in names.items()}
    stored = [f"{root}/{folder.name}" for folder in photos]
    words = ["run", "--images", stored[0], "--masks", stored[1], "--model", MODEL, "--recipe", recipe]
    words += ["--out", f"{root}/run"]
    for shard in ("2/2", "1/2"):
        run_command(*words, "--shard", shard)
        close_folder(open_folder(f"{root}/run"))  # the next shard is another machine
    assert "parts: 12 of 12 (100 %)" in run_command("status", f"{root}/run")
    run_command("merge", f"{root}/run")
    for name, content in files.items():
        path = tmp_path / name.removeprefix(below)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert output_bytes(tmp_path / "run", [*stored, f"{root}/run"]) == expected


def test_google_storage_keeps_the_first_of_two_writers_and_a_refusal_is_one_line_at_once(bucket: Bucket) -> None:
    storage = ObjectStorage("gs://bucket/run")
    assert storage.write_new("work/plan.json", b"first")
    assert not storage.write_new("work/plan.json", b"second")
    assert bucket.files == {"run/work/plan.json": b"first"}
    assert not storage.exists("work/other")
    storage.remove("work/other")
    with pytest.raises(FileNotFoundError):
        storage.read("work/other")
    refused = ObjectStorage("gs://refused/run")
    with pytest.raises(cf.UserError, match=r"it refuses: Forbidden: .*check the credentials") as caught:
        refused.list_files()
    assert "\n" not in str(caught.value)
    with pytest.raises(cf.UserError, match=r"it refuses: Forbidden: .*check the credentials"):
        refused.write("name", b"")


def test_files_on_the_hub_are_seen_as_soon_as_another_machine_wrote_them(hub: Hub) -> None:
    storage = ObjectStorage("hf://datasets/user/data/run")
    storage.write("work/first", b"one")
    assert not storage.exists("work/second")
    assert [file.name for file in storage.list_files()] == ["work/first"]
    hub.files["run/work/second"] = b"two"  # by another machine
    assert storage.read("work/second") == b"two"
    assert storage.exists("work/second")
    hub.files["run/work/third"] = b"three"
    assert not storage.write_new("work/third", b"other")
    hub.files["run/work/fourth"] = b"four"
    listed = [file.name.removeprefix("work/") for file in storage.list_files()]
    assert listed == ["first", "fourth", "second", "third"]
    del hub.files["run/work/fourth"]
    storage.remove("work/fourth")
    with pytest.raises(FileNotFoundError):
        storage.read("work/fourth")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("hf://datasets/user/missing/run", "'datasets/user/missing' is not there; make it, check the address"),
        ("hf://datasets/user/refused/run", "it refuses: 403 Forbidden.*check the credentials"),
        ("hf://datasets", "an address that can be used to list"),
        ("hf://", "an address that can be used to list"),
    ],
)
def test_a_repository_that_cannot_be_had_is_one_line_at_once(hub: Hub, address: str, said: str) -> None:
    with pytest.raises(cf.UserError, match=said) as caught:
        ObjectStorage(address).list_files()
    assert "\n" not in str(caught.value)


def test_photos_at_an_address_and_masks_in_a_folder_are_refused(photos: tuple[Path, Path]) -> None:
    with pytest.raises(cf.UserError, match="both at addresses or both in local folders"):
        open_source("memory://photos", photos[1])


def test_without_the_extra_the_line_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['fsspec'] = None\n"
        "from counterfoil.store.object_storage import ObjectStorage\n"
        "ObjectStorage('s3://bucket').list_files()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'counterfoil[remote]'" in done.stderr.splitlines()[-1]


def test_licences_reviews_and_strays_are_those_of_a_local_folder(tmp_path: Path) -> None:
    images, masks = write_photos(tmp_path, 4)
    first, second, third, _ = sorted(path.relative_to(images) for path in images.rglob("*.png"))
    (images / "licences.csv").write_text(f"file,licence,origin\n{first},CC0,a museum\n")
    (masks / "review.csv").write_text(f"file,verdict\n{second},rejected\n")
    (masks / third).unlink()
    (images / "loose.png").write_bytes(b"")
    (images / first.parent / "notes.txt").write_text("")
    (images / first.parent / "deep").mkdir()
    (images / first.parent / "deep" / "photo.png").write_bytes(b"")
    for folder in (images, masks):
        put_folder(folder, f"memory://strays/{folder.name}")
    here, there = (
        open_source(images, masks),
        open_source(f"memory://strays/{images.name}", f"memory://strays/{masks.name}"),
    )
    assert there.samples()[0] == here.samples()[0]
    assert sorted(map(str, there.samples()[1])) == sorted(map(str, here.samples()[1]))
    assert there.labels == here.labels


def test_a_photo_that_changed_is_refused_and_a_damaged_cache_is_not_used(
    photos: tuple[Path, Path], cache: Path
) -> None:
    for folder in photos:
        put_folder(folder, f"memory://changed/{folder.name}")
    source = open_source(f"memory://changed/{photos[0].name}", f"memory://changed/{photos[1].name}")
    sample = source.samples()[0][0]
    pixels = source.read(sample)[0]
    kept = cache / f"{sample.digest}-0"
    kept.write_bytes(b"damaged")
    assert (source.read(sample)[0] == pixels).all()
    assert kept.read_bytes() != b"damaged"
    ObjectStorage(str(source.images)).write(sample.image, b"another")
    assert (source.read(sample)[0] == pixels).all()  # the cache has the photo as it was listed
    kept.unlink()
    with pytest.raises(cf.UserError, match="has changed since"):
        source.read(sample)
    ObjectStorage(str(source.images)).remove(sample.image)
    with pytest.raises(cf.Unusable, match="is not there"):
        source.read(sample)


def test_the_cache_of_photos_stays_within_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = PhotoCache(tmp_path / "cache", 1000)
    for number in range(20):
        cache.write(f"photo-{number}", bytes(100))
        assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 1000
    assert cache.read("photo-19") == bytes(100)
    assert cache.read("photo-0") is None
    cache.write("large", bytes(2000))
    assert cache.read("large") is None
    monkeypatch.setenv("COUNTERFOIL_PHOTO_CACHE_GB", "much")
    with pytest.raises(cf.UserError, match="expected a number of gigabytes"):
        open_photo_cache()


def test_shards_that_begin_together_with_other_plans_are_refused(photos: tuple[Path, Path], recipe: str) -> None:
    first = open_folder("memory://race/run")
    config = RunConfig(source=open_source(*photos), models=(MODEL,), recipe=recipe, seed=1)
    shard = Execution(shard=WorkShard(1, 2))
    process_shard(RunConfig(**{**vars(config), "execution": shard}), first)  # its plan is there before the other is put
    plan = ObjectStorage("memory://race/run").read("work/plan.json")
    close_folder(first)
    for name in ("run.json", "work/plan.json", "work/samples.parquet"):
        ObjectStorage("memory://race/run").remove(name)
    second = open_folder("memory://race/run")
    ObjectStorage("memory://race/run").write("work/plan.json", plan)
    with pytest.raises(cf.UserError, match="expected the plan in"):
        process_shard(RunConfig(**{**vars(config), "execution": shard, "seed": 2}), second)
    close_folder(second)


def test_calls_are_tried_again_and_an_end_of_patience_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    failures = [3]

    class FlakyFileSystem(MemoryFileSystem):  # type: ignore[misc]
        protocol = "flaky"

        def cat_file(self, path: str, **options: Any) -> bytes:
            failures[0] -= 1
            if failures[0] >= 0:
                raise OSError("the line is cut")
            content: bytes = super().cat_file(path, **options)
            return content

    fsspec.register_implementation("flaky", FlakyFileSystem, clobber=True)
    monkeypatch.setattr(object_storage, "_FIRST_PAUSE", 0.0001)
    storage = ObjectStorage("flaky://folder")
    assert storage.write_new("name", b"content")
    assert not storage.write_new("name", b"other")
    assert storage.read("name") == b"content"
    failures[0] = 100
    with pytest.raises(cf.UserError, match="7 attempts failed, the last with: the line is cut"):
        storage.read("name")
