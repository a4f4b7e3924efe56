"""Annotators see the class's readable name, a definition and photos of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from counterfoil.errors import UserError
from counterfoil.store.workspace import Workspace
from counterfoil.verification.class_guides import check_described_classes, make_guides, name_classes, read_definitions
from counterfoil.verification.questionnaire import ClassDescription, Questionnaire
from verify_site import build_workspace, hosted, questions_file

TABBY = "n02123045"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty photos: five of each class, of which one is named as a folder and one is an id of ImageNet."""
    return build_workspace(tmp_path_factory.mktemp("guides"), 20, crimson="dark_red_ball")


def test_names_are_readable_and_the_questionnaire_has_the_last_word(workspace: Path) -> None:
    opened = Workspace(workspace)
    assert name_classes(opened).name_of("dark_red_ball") == "dark red ball"
    described = Questionnaire(classes={"azure": ClassDescription(name="blue ball")})
    assert name_classes(opened, described).name_of("azure") == "blue ball"


def test_the_label_space_of_painted_pictures_and_of_imagenet_names_single_labels(
    workspace: Path, tmp_path: Path
) -> None:
    built = build_workspace(tmp_path, 4, crimson=TABBY)
    assert name_classes(Workspace(built)).name_of(TABBY) == "tabby"  # though the other labels are not ImageNet's


def test_a_guide_shows_photos_that_are_neither_the_picture_nor_a_hidden_control(workspace: Path) -> None:
    opened = Workspace(workspace)
    originals = [row.variant for row in opened.pictures if row.variant.attribute == "original"]
    mine = [variant for variant in originals if variant.label == "azure"]
    guide = make_guides(opened, Questionnaire(), {mine[0].id})["azure"]
    shown = guide.choose_references(mine[1].sample_id)
    assert len(shown) == 3
    assert set(shown) == {variant.id for variant in mine[2:]}
    few = make_guides(opened, Questionnaire(), {variant.id for variant in mine})["azure"]
    assert len(few.choose_references(None)) == 3  # where all are controls, they serve all the same


def test_classes_that_no_picture_has_are_all_named(workspace: Path) -> None:
    described = Questionnaire(classes={"azur": ClassDescription(), "crimsn": ClassDescription()})
    with pytest.raises(UserError, match="'azure', got 'azur', 'crimsn'; `classes` is keyed by label"):
        check_described_classes(described, name_classes(Workspace(workspace)).labels[:1])


def test_imagenet_classes_have_wordnets_definition() -> None:
    assert "cat" in read_definitions([TABBY])[TABBY]
    assert read_definitions([]) == {}


def test_a_task_carries_the_definition_and_addresses_of_three_photos(workspace: Path, tmp_path: Path) -> None:
    questions = questions_file(tmp_path, classes={"azure": {"name": "blue ball", "definition": "A ball that is blue."}})
    with hosted(workspace, questions) as site:
        ada = site.annotator("Ada")
        tasks = ada.tasks(20)
        blue = [task for task in tasks if task["class_name"] == "blue ball"]
        assert {task["definition"] for task in blue} == {"A ball that is blue."}
        assert all(len(task["references"]) == 3 for task in tasks)
        reply = ada.http.get(tasks[0]["references"][0])
        assert (reply.status_code, reply.headers["content-type"]) == (200, "image/jpeg")
        assert ada.http.get("/reference/guessed").status_code == 404
        assert site.administrator().http.get(tasks[0]["references"][0]).status_code == 403


@pytest.mark.browser
def test_the_page_shows_name_definition_and_photos_and_enlarges_them(workspace: Path, tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    from verify_browser import Server, administrator, at_work, chromium

    copy = shutil.copytree(workspace, tmp_path / "workspace", ignore=shutil.ignore_patterns("verify"))
    labels = name_classes(Workspace(copy)).labels
    questions = questions_file(tmp_path, classes={label: {"definition": f"About {label}."} for label in labels})
    server = Server(copy, questions)
    server.start()
    try:
        with sync_playwright() as playwright:
            browser = chromium(playwright)
            page = at_work(browser, administrator(browser, server).invite("Ada"))
            assert page.inner_text("#definition").startswith("About ")
            page.wait_for_function(
                "() => [...document.querySelectorAll('#references img')].filter((image) => image.naturalWidth)"
                ".length === 3"
            )
            page.locator("#references button").first.click()
            assert page.locator("#zoom").evaluate("zoom => zoom.open")
            browser.close()
    finally:
        server.kill()
