"""What tests share: which are slow, the outside programs they may need, and the offline default's assets."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from counterfoil.assets.cache import fetch_asset

# The same examples every time; `pytest tests/properties --hypothesis-profile search` looks for new ones.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None, max_examples=30)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("fixed")

# What `make check` leaves out, by measured time (`--durations`): whole runs, web services, rendered pages and figures,
# networks, contract checks of every edit, and single tests of a second or more.
SLOW_FILES = (
    "test_docstrings.py", "test_documentation.py", "test_example_scripts.py", "test_consumer_types.py",
    "cli/test_command_output.py", "analysis/", "runner/test_random_faults.py", "statistics/test_photo_tests.py",
    "assets/test_cache.py", "assets/test_networks.py", "benchmark/test_diff.py", "benchmark/test_full_disk.py",
    "benchmark/test_layouts.py", "benchmark/test_licences.py", "builder/",
    "generation/test_quality_control.py", "painters/test_python_painter.py", "study/test_confidence.py",
    "verification/test_accuracy_change.py", "verification/test_answer_quality.py",
    "verification/test_class_guides.py", "verification/test_hostile_files.py",
    "edits/test_background_colour.py", "edits/test_background_contract.py", "edits/test_geometry.py",
    "edits/test_complexity.py", "edits/test_corruptions.py", "edits/test_edit_contract.py", "edits/test_fill.py",
    "edits/test_fill_choice.py", "edits/test_tool_checks.py",
    "edits/test_shadow.py", "edits/test_texture.py", "evaluation/", "generation/test_generator.py",
    "mask_review/", "runner/test_planted_pairs.py", "runner/test_setup_faults.py", "report/test_workflow.py",
    "mining/test_miner.py", "models/test_gpu_batches.py", "models/test_model_commands.py",
    "models/test_torch_classifier.py", "published/test_scores.py", "study/test_runs.py",
    "painters/test_background_model.py", "painters/test_background_network.py", "painters/test_diffusers_painter.py",
    "published/test_hostile_archives.py", "published/test_readers.py", "published/test_tar_zip.py",
    "remedies/test_repair.py", "remedies/test_train.py", "remedies/test_mined_pictures.py", "report/test_exports.py",
    "report/test_page.py", "report/test_show.py", "runner/", "sources/test_annotations.py", "test_plugins.py",
    "verification/test_database.py", "verification/test_load.py", "verification/test_pages.py",
    "verification/test_security.py", "verification/test_service.py", "verification/test_verdict_files.py",
)  # fmt: skip
SLOW_TESTS = {
    "test_the_demo_ends_with_a_verdict_on_a_repair_and_a_picture",
    "test_copies_depend_on_content_seed_and_epoch_and_not_on_the_order",
    "test_pictures_with_other_pixels_than_the_models_saw_are_left_out_and_counted",
    "test_the_object_passes_and_a_piece_of_the_background_does_not",
    "test_after_an_answer_that_did_not_come_the_next_one_counts",
    "test_the_old_name_of_runtime_onnx_works_unseen_and_says_so",
    "test_a_run_from_a_file_is_the_run_of_the_same_options",
    "test_a_new_class_takes_over_only_the_questions_it_wins",
    "test_default_intervals_cover_the_true_drop_94_to_96_times_in_100",
    "test_distractors_are_spread_over_the_other_classes",
    "test_evaluate_takes_its_collection_and_models_from_a_file",
    "test_every_wording_of_every_class_beats_every_distractor",
    "test_everything_that_reads_runs_reads_an_import",
    "test_a_plain_table_becomes_a_run_with_drops_and_report",
    "test_help_and_networks_in_the_cache_do_without_the_onnx_package",
    "test_intervals_are_those_of_pictures_resampled_one_by_one",
    "test_random_order_puts_the_truth_first_half_of_the_time",
    "test_the_code_of_the_readme_runs",
    "test_the_interval_of_the_error_ratio_covers_the_true_ratio",
    "test_with_replicates_the_default_interval_covers_94_to_96_times_in_100",
}
# What takes longest, first: a long file that begins last leaves the other processes idle. By the seconds of a run of
# everything in two processes (`--durations=0`, added up by file).
LONGEST_FILES = (
    "runner/test_engines.py", "runner/test_demo.py", "remedies/test_repair.py", "runner/test_painting_processes.py",
    "store/test_power_loss.py", "runner/test_random_faults.py", "runner/test_planted_pairs.py",
    "test_example_scripts.py", "runner/test_render_device.py", "remedies/test_train.py", "runner/test_processes.py",
    "runner/test_stored_results.py", "runner/test_planted_faults.py", "cli/test_command_output.py",
    "runner/test_result_tables.py", "report/test_workflow.py", "test_torch.py", "verification/test_load.py",
    "study/test_runs.py", "runner/test_parts.py", "runner/test_object_storage.py", "models/test_model_identity.py",
    "test_plugins.py", "edits/test_background_colour.py", "test_consumer_types.py", "test_workflows.py",
    "runner/test_python_objects.py", "remedies/test_mined_pictures.py", "test_documentation.py",
    "runner/test_end_to_end.py", "runner/test_found_masks.py", "runner/test_run.py", "models/test_gpu_batches.py",
    "models/test_torch_classifier.py", "runner/test_painted_backgrounds.py", "mask_review/test_review_page.py",
)  # fmt: skip
TESTS = Path(__file__).parent
# Runs of tests fill holes by patches alone: the inpainting network takes a second a hole. Its own tests ask for it.
os.environ.setdefault("COUNTERFOIL_MIGAN", "none")
os.environ["COUNTERFOIL_RESULTS_MB"] = "0"  # what an earlier run stored would not be tested
os.environ["COUNTERFOIL_PROGRESS"] = "off"  # lines on standard error would depend on how fast the machine is

PRESENT: dict[str, Callable[[], bool]] = {
    "browser": lambda: shutil.which("chromium") is not None,
    "postgres": lambda: any(Path("/usr/lib/postgresql").glob("*/bin/postgres")),
    "torch": lambda: importlib.util.find_spec("torch") is not None,
    "ray": lambda: importlib.util.find_spec("ray") is not None,
    "remote": lambda: all(
        importlib.util.find_spec(name) is not None for name in ("s3fs", "moto", "flask", "gcsfs", "huggingface_hub")
    ),
}


def is_slow_file(path: Path) -> bool:
    """Whether all tests of a file are slow."""
    return path.is_relative_to(TESTS) and path.relative_to(TESTS).as_posix().startswith(SLOW_FILES)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Under `-m "not slow"` do not even import the files of slow tests."""
    return True if "not slow" in config.option.markexpr and is_slow_file(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests, and put the longest files first."""
    places = {TESTS / name: place for place, name in enumerate(LONGEST_FILES)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    for item in items:
        if is_slow_file(item.path) or item.name.partition("[")[0] in SLOW_TESTS:
            item.add_marker("slow")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip by name what this machine lacks; under COUNTERFOIL_REQUIRE such a skip is a failure."""
    required = os.environ.get("COUNTERFOIL_REQUIRE", "").split(",")
    for need, is_present in PRESENT.items():
        if item.get_closest_marker(need) and not is_present():
            reason = f"needs {need}, which this machine lacks"
            if need in required:
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason)


@pytest.fixture(scope="session")
def assets() -> Callable[[str], Path]:
    """The offline default's files by name, fetched on first use."""
    return fetch_asset
