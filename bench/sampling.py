"""A sampling profiler for all threads: it reads their stacks every few milliseconds."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import FrameType

SECONDS_BETWEEN_LOOKS = 0.003
# The innermost of our modules on a stack says what the thread is doing.
PARTS = {
    "counterfoil.sources": "decoding and fingerprints",
    "counterfoil.assets": "loading networks",
    "counterfoil.segmentation": "masks, and objects in fills",
    "counterfoil.edits.matting": "masks and matting",
    "counterfoil.edits.fill": "filling the background",
    "counterfoil.edits.fill_choice": "filling the background",
    "counterfoil.edits.patch_match": "filling the background",
    "counterfoil.edits.patch_refinement": "filling the background",
    "counterfoil.edits.patch_composition": "filling the background",
    "counterfoil.edits.smooth_fill": "filling the background",
    "counterfoil.edits.inpainting_network": "MI-GAN",
    "counterfoil.edits.fill_quality": "judging fills",
    "counterfoil.edits.line_ends": "judging fills",
    "counterfoil.edits.attachments": "judging fills",
    "counterfoil.edits.visible_change": "measuring the change",
    "counterfoil.edits.variant_plan": "planning",
    "counterfoil.edits": "edits",
    "counterfoil.variant_renderer": "reducing photos",
    "counterfoil.runner": "hashes and parts",
    "counterfoil.models.preprocessing": "preprocessing",
    "counterfoil.models.pillow_resize": "preprocessing",
    "counterfoil.study": "thumbnails and report",
    "counterfoil.report": "thumbnails and report",
    "counterfoil.models": "inference",
    "counterfoil.store.picture_collection": "ranking the answers",
    "counterfoil.store": "parts and tables",
}
IDLE = ("counterfoil.worker_pool", "counterfoil.runner", "counterfoil.progress")


def sampled(work: Callable[[], object]) -> dict[str, float]:
    """Do the work and give back the share of busy time, in percent, of each part, largest first."""
    counts: Counter[str] = Counter()
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(counts, done), daemon=True)
    watcher.start()
    work()
    done.set()
    watcher.join()
    return {part: 100 * count / counts.total() for part, count in counts.most_common()}


def _watch(counts: Counter[str], done: threading.Event) -> None:
    own = threading.get_ident()
    while not done.wait(SECONDS_BETWEEN_LOOKS):
        parts = (_part(frame) for thread, frame in sys._current_frames().items() if thread != own)
        counts.update(part for part in parts if part is not None)


def _part(frame: FrameType | None) -> str | None:
    """What the thread is doing; None where it waits or is not ours."""
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("counterfoil"):
            return _named(module)
        frame = frame.f_back
    return None


def _named(module: str) -> str | None:
    while module:
        if module in PARTS:
            return PARTS[module]
        if module in IDLE:
            return None
        module = module.rpartition(".")[0]
    return "the rest"
