"""The database: migrations, both kinds of server, what is stored and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import insert, inspect, select, update
from sqlalchemy.exc import IntegrityError

from counterfoil.errors import UserError
from counterfoil.verification import schema
from counterfoil.verification.accounts import Person, begin_session, invite_person
from counterfoil.verification.assignment import lease_up_to
from counterfoil.verification.database import Database, open_database, sqlite_url
from counterfoil.verification.hidden_controls import ShownPicture
from counterfoil.verification.leases import AnnotatorRequest, exclude_annotator, include_annotator, release_expired
from counterfoil.verification.project import Project, store_project
from counterfoil.verification.questionnaire import Questionnaire
from counterfoil.verification.submissions import Refused, Submission, read_all_verdicts, read_counted_verdicts, submit
from postgres_server import fresh_database, postgres

YES = {"recognisable": "yes", "only": "yes"}
PLAIN = Questionnaire(annotators=2, control_share=0)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "verify.sqlite")
    name = f"test_{abs(hash(request.node.name))}"
    return fresh_database(request.getfixturevalue("server"), name)


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    found = open_database(url)
    yield found
    found.close()


def begun(database: Database, pictures: int, questionnaire: Questionnaire = PLAIN, people: int = 2) -> list[Person]:
    """A project of pictures, and annotators who are at work."""
    shown = [ShownPicture(f"v{place}", "cat", "work", None) for place in range(pictures)]
    store_project(database, Project("0" * 64, questionnaire), shown)
    with database.writing() as connection:
        found = [invite_person(connection, f"person {place}", "annotator", 0.0, 1e9) for place in range(people)]
        for person in found:
            begin_session(connection, person.id, 0.0, None)
    return found


def answer_all(database: Database, person: Person, now: float = 1.0, answers: dict[str, str] = YES) -> int:
    draw = AnnotatorRequest(person, PLAIN, now)
    with database.writing() as connection:
        leases = lease_up_to(connection, draw, 20)
        for lease in leases:
            submit(connection, draw, Submission(lease.task, answers, 1.0, f"key-{lease.task}"))
    return len(leases)


def taken(database: Database) -> list[int]:
    with database.reading() as connection:
        return list(connection.execute(select(schema.pictures.c.taken).order_by(schema.pictures.c.id)).scalars())


def test_the_migrations_end_in_the_tables_that_the_code_speaks_of(url: str) -> None:
    database = open_database(url)
    with database.writing() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
    database.close()


def test_a_database_of_the_first_revision_is_brought_up_with_its_answers(url: str) -> None:
    old = Database(url)
    old.upgrade("0001")
    with old.reading() as connection:
        assert "adjudications" not in inspect(connection).get_table_names()
    person = begun(old, 3)[0]
    assert answer_all(old, person) == 3
    old.close()
    new = open_database(url)
    with new.reading() as connection:
        assert len(read_all_verdicts(connection)) == 6
        assert "adjudications" in inspect(connection).get_table_names()
    new.close()


def test_opening_again_changes_nothing(url: str) -> None:
    first = open_database(url)
    person = begun(first, 2)[0]
    answer_all(first, person)
    first.close()
    second = open_database(url)
    with second.reading() as connection:
        assert len(read_all_verdicts(connection)) == 4
    second.close()


def test_the_database_itself_refuses_more_than_n_and_a_picture_twice(database: Database) -> None:
    person = begun(database, 1)[0]
    answer_all(database, person)
    with pytest.raises(IntegrityError), database.writing() as connection:
        connection.execute(update(schema.pictures).values(taken=3))
    with database.reading() as connection:
        row = dict(connection.execute(select(schema.assignments)).one()._mapping)
    del row["id"]
    fresh = {"task": "t", "picture_handle": "p", "original_handle": "o"}
    with pytest.raises(IntegrityError), database.writing() as connection:
        connection.execute(insert(schema.assignments).values({**row, **fresh}))


def test_corrections_are_new_rows(database: Database) -> None:
    person = begun(database, 1)[0]
    draw = AnnotatorRequest(person, PLAIN, 1.0)
    with database.writing() as connection:
        task = lease_up_to(connection, draw, 1)[0].task
        submit(connection, draw, Submission(task, YES, 1.0, "first-key"))
        submit(connection, draw, Submission(task, {**YES, "only": "no"}, 2.0, "second-key"))
    with database.reading() as connection:
        rows = [(row.answer, row.version) for row in read_counted_verdicts(connection) if row.question == "only"]
    assert rows == [("yes", 1), ("no", 2)]


def test_a_failed_transaction_leaves_no_trace(database: Database) -> None:
    person = begun(database, 2)[0]
    draw = AnnotatorRequest(person, PLAIN, 1.0)
    with pytest.raises(Refused), database.writing() as connection:
        task = lease_up_to(connection, draw, 2)[0].task
        submit(connection, draw, Submission(task, YES, 1.0, "the-first-key"))
        submit(connection, draw, Submission("no such task", YES, 1.0, "another-key"))
    assert taken(database) == [0, 0]
    with database.reading() as connection:
        assert read_all_verdicts(connection) == []


def test_leases_that_ran_out_come_back_and_a_late_answer_needs_a_free_place(database: Database) -> None:
    late, *others = begun(database, 1, PLAIN, people=3)
    draw = AnnotatorRequest(late, PLAIN, 0.0)
    with database.writing() as connection:
        task = lease_up_to(connection, draw, 1)[0].task
    later = 60 * PLAIN.lease_minutes + 1
    with database.writing() as connection:
        assert release_expired(connection, later - 2) == 0
        assert release_expired(connection, later) == 1
    assert taken(database) == [0]
    assert answer_all(database, others[0], later) == 1
    with database.writing() as connection:
        assert submit(connection, AnnotatorRequest(late, PLAIN, later), Submission(task, YES, 1.0, "late-key"))
    assert taken(database) == [2]
    assert answer_all(database, others[1], later) == 0


def test_leases_of_a_package_are_not_shortened_by_a_visit_to_the_page(database: Database) -> None:
    person = begun(database, 3)[0]
    with database.writing() as connection:
        lease_up_to(connection, AnnotatorRequest(person, PLAIN, 0.0, minutes=10_000), 2)
        lease_up_to(connection, AnnotatorRequest(person, PLAIN, 1.0), 3)
    with database.writing() as connection:
        assert release_expired(connection, 60 * PLAIN.lease_minutes + 2) == 1
        assert release_expired(connection, 60 * 10_000 + 1) == 2


def test_leaving_somebody_out_frees_the_places_and_taking_them_back_fills_what_is_free(database: Database) -> None:
    first, second, third = begun(database, 4, PLAIN, people=3)
    for person in (first, second):
        answer_all(database, person, now=1.0)
    before = taken(database)
    with database.writing() as connection:
        exclude_annotator(connection, first.id, "asleep")
        assert {row.annotator for row in read_counted_verdicts(connection)} <= {second.name}
    assert sum(taken(database)) < sum(before)
    answer_all(database, third, now=1.0)
    with database.writing() as connection:
        include_annotator(connection, first.id)
    assert max(taken(database)) <= 2
    with database.reading() as connection:
        assert {row.annotator for row in read_all_verdicts(connection)} >= {first.name, second.name}


def test_a_database_of_a_later_version_is_refused(url: str) -> None:
    database = open_database(url)
    with database.writing() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    with pytest.raises(UserError, match="expected a database of this version"):
        open_database(url)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://somewhere/name", "sqlite or postgresql"),
        ("nonsense", "a database URL such as"),
        ("sqlite:////no/such/folder/verify.sqlite", "cannot be used"),
        ("postgresql://user:hidden@127.0.0.1:1/name", "cannot be used"),
        ("postgresql://user:hidden@127.0.0.1:1/name?no_such_option=1", "cannot be used"),
        ("postgresql://user@127.0.0.1:1/name?password=hidden", "cannot be used"),
        ("postgresql://user:hidden@host:port/name", "a database URL such as"),
        (f"sqlite:///{__file__}", "file is not a database"),
        ("sqlite://", "expected a file"),
        ("sqlite:///:memory:", "expected a file"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_line_without_the_password(url: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as refused:
        open_database(url)
    assert "\n" not in str(refused.value)
    assert "hidden" not in str(refused.value)
