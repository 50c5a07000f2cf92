"""The archive of Spark's classes is used where it fits, and where it does not nothing but time is lost."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from nemesrv.chaos.checks.spark import class_archive, make_class_archive
from nemesrv.chaos.checks.spark.class_archive import ClassArchive
from nemesrv.chaos.checks.spark.session import jvm_pid
from nemesrv.chaos.checks.spark.settings import conf_of
from nemesrv.chaos.errors import HarnessError


@pytest.fixture(autouse=True)
def nobody_set_spark_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in class_archive._SET_UP_BY_SOMEBODY:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(class_archive, "FOLDER", tmp_path)
    return tmp_path


def write(folder: Path, classes: bytes = b"", **other: Any) -> Path:
    """An archive's two files; its `classes` are what they are."""
    jars = class_archive.jars()[0].parent
    document = {
        "made_for": class_archive.made_for(),
        "file": "classes-1.jsa",
        "java": ["java", "-Xmx256m", "-cp", f"{jars}/*"],
    }
    (folder / "archive.json").write_text(json.dumps({**document, **other}))
    (folder / "classes-1.jsa").write_bytes(classes)
    return folder / "classes-1.jsa"


def test_an_archive_of_this_java_and_this_spark_is_found(folder: Path) -> None:
    found = class_archive.find()
    assert found is None
    written = write(folder)
    found = class_archive.find()
    assert found is not None
    command = found.command(conf_of(None, large=False))
    assert command[:2] == ["java", f"-XX:SharedArchiveFile={written}"]
    assert command[-1] == "pyspark-shell"
    assert "spark.app.name=nemesrv" in command


def test_one_made_for_another_java_spark_or_setting_is_not(folder: Path) -> None:
    write(folder, made_for="another")
    assert class_archive.find() is None


@pytest.mark.parametrize("damaged", ["", "[]", "{}", '{"file": 1}', "\0"])
def test_a_damaged_one_is_not(folder: Path, damaged: str) -> None:
    write(folder)
    (folder / "archive.json").write_text(damaged)
    assert class_archive.find() is None


def test_one_whose_classes_are_gone_is_not(folder: Path) -> None:
    write(folder).unlink()
    assert class_archive.find() is None


def test_who_set_spark_up_gets_the_jvm_of_his_own_launcher(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder)
    monkeypatch.setenv("SPARK_CONF_DIR", "/etc/spark")
    assert class_archive.find() is None
    with pytest.raises(HarnessError, match="its own launcher is used"):
        make_class_archive.make()


def test_a_folder_that_cannot_be_written_is_said_in_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a file").touch()
    monkeypatch.setattr(class_archive, "FOLDER", folder / "a file" / "below")
    with pytest.raises(HarnessError, match=r"cannot be written to .*: Not a directory"):
        make_class_archive.make()


def test_a_jvm_that_ends_at_once_is_noticed() -> None:
    with open(os.devnull, "ab") as said, pytest.raises(HarnessError, match="ended at once, with status 1"):
        class_archive.launch(["false"], said)


@pytest.mark.spark
def test_a_jvm_starts_with_classes_that_it_cannot_read(folder: Path) -> None:
    write(folder, b"no classes at all")
    archive = class_archive.find()
    assert archive is not None
    with open(os.devnull, "ab") as said:
        gateway = class_archive.launch(archive.command(conf_of(None, large=False)), said)
    try:
        assert gateway.jvm.java.lang.Math.abs(-7) == 7
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()
        assert gateway.proc.wait(timeout=30) == 0
    assert "PYSPARK_GATEWAY_PORT" not in os.environ


@pytest.mark.spark
def test_the_session_of_a_small_history_has_the_archive_that_set_up_made(spark: Any) -> None:
    archive: ClassArchive | None = class_archive.find()
    if archive is None:
        pytest.skip("no archive of Spark's classes: python -m nemesrv.chaos.checks.spark.make_class_archive makes it")
    maps = Path(f"/proc/{jvm_pid()}/maps").read_text()
    assert archive.file.name in maps
