"""Which program a node is, where its jars are, and what is said where they are not what they should be."""

from pathlib import Path

import pytest

from nemesrv.chaos.apache import maven
from nemesrv.chaos.apache.distribution import Distribution, ProgramPart, distribution
from nemesrv.chaos.apache.maven import SUMS, JavaMissing
from nemesrv.remoting.node.profile import Profile


def test_ours_is_none_of_apaches() -> None:
    assert distribution("ours") is None


@pytest.mark.parametrize(
    ("text", "part", "version", "profile"),
    [
        ("apache-4.9.7", ProgramPart.SERVERS, "4.9.7", Profile.V4_9),
        ("apache-4.9.8", ProgramPart.SERVERS, "4.9.7", Profile.V4_9),
        ("apache-4.9.8", ProgramPart.CLIENTS, "4.9.8", Profile.V4_9),
        ("apache-5.3.3", ProgramPart.SERVERS, "5.3.3", Profile.V5_X),
    ],
)
def test_a_version_says_its_jars_and_its_profile(text: str, part: ProgramPart, version: str, profile: Profile) -> None:
    """4.9.8 was published without its servers: 4.9.7's are taken."""
    found = distribution(text)
    assert found is not None
    assert (found.version_of(part), found.profile, str(found)) == (version, profile, text)


@pytest.mark.parametrize("text", ["", "apache", "apache-", "apache-5", "apache-3.2.6", "5.3.3", "apache:", "theirs"])
def test_what_is_no_implementation_is_refused_with_what_is(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no implementation; expected ours, apache-VERSION"):
        distribution(text)


def _home(folder: Path, version: str = "5.3.3") -> Path:
    (folder / "lib").mkdir(parents=True)
    for part in ("common", "namesrv"):
        (folder / "lib" / f"rocketmq-{part}-{version}.jar").write_bytes(part.encode())
    return folder


def test_a_folder_is_asked_for_its_version(tmp_path: Path) -> None:
    found = distribution(f"apache:{_home(tmp_path / 'mq', '4.9.4')}")
    assert found == Distribution(f"apache:{tmp_path / 'mq'}", home=tmp_path / "mq")
    assert found.version_of(ProgramPart.SERVERS) == "4.9.4"
    assert found.profile is Profile.V4_9


def test_a_folder_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert str(distribution("apache:mq")) == f"apache:{tmp_path / 'mq'}"


def test_a_folder_that_is_no_distribution_says_what_is_missing(tmp_path: Path) -> None:
    found = distribution(f"apache:{tmp_path}")
    assert found is not None
    with pytest.raises(JavaMissing, match=r"is no RocketMQ distribution: there is no lib/rocketmq-common-VERSION\.jar"):
        found.class_path(ProgramPart.SERVERS)


def test_a_folder_is_held_against_its_own_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maven.shutil, "which", lambda name: name)
    home = _home(tmp_path / "mq")
    found = Distribution("apache:mq", home=home)
    assert found.class_path(ProgramPart.SERVERS) == f"{home}/lib/*"
    maven.keep_sums(home / "lib")
    assert found.class_path(ProgramPart.SERVERS) == f"{home}/lib/*"
    (home / "lib" / "rocketmq-common-5.3.3.jar").write_bytes(b"another")
    with pytest.raises(JavaMissing, match=r"rocketmq-common-5\.3\.3\.jar is not the file .* unpack the distribution"):
        found.class_path(ProgramPart.SERVERS)


def test_jars_of_the_cache_are_held_against_the_list_beside_them(tmp_path: Path) -> None:
    """A jar that was changed, added or taken away is named, with how to mend it."""
    folder = tmp_path / "servers-5.3.3"
    folder.mkdir()
    (folder / "a.jar").write_bytes(b"a")
    assert maven.resolve("it", "", folder) == folder  # of before there were lists: what is there becomes the list
    assert (folder / SUMS).read_text().endswith("  a.jar\n")
    assert maven.resolve("it", "", folder) == folder
    (folder / "b.jar").write_bytes(b"b")
    with pytest.raises(JavaMissing, match=r"b\.jar is not the file that .* remove .* and it is resolved again"):
        maven.resolve("it", "", folder)


def test_without_maven_jars_that_are_not_there_cannot_be_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maven.shutil, "which", lambda name: None)
    with pytest.raises(JavaMissing, match="mvn is missing: install Apache Maven"):
        maven.resolve("it", "", tmp_path / "jars")


def test_where_java_is_not_on_path_that_of_java_home_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(JavaMissing, match="java is not on PATH: install a JDK 17"):
        maven.require("java")
    (tmp_path / "jdk" / "bin").mkdir(parents=True)
    (tmp_path / "jdk" / "bin" / "java").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    with pytest.raises(JavaMissing, match=f"java is not on PATH: put {tmp_path}/jdk/bin on it"):
        maven.require("java")


def test_a_list_of_sha256sum_is_read_as_it_writes_it() -> None:
    assert maven.read_sums("AB12  a.jar\ncd34 *b.jar\n\n") == {"a.jar": "ab12", "b.jar": "cd34"}


def test_what_maven_says_comes_to_one_sentence() -> None:
    """A version that there is not is told as such."""
    said = (
        "[ERROR] Failed to execute goal on project interop: Could not resolve dependencies: Could not find artifact "
        "org.apache.rocketmq:rocketmq-namesrv:jar:5.9.9 in a repository -> [Help 1]\n[ERROR] and more"
    )
    assert maven.why_none(said) == (
        "Maven found no org.apache.rocketmq:rocketmq-namesrv:jar:5.9.9: is there such a version?"
    )
    assert maven.why_none("[ERROR] offline") == "Maven has no jars: offline"
    offline = (
        "\x1b[0m\x1b[0m[ERROR] Failed to execute goal on project interop: Could not resolve dependencies for project "
        "nemesrv:interop:pom:1: The following artifacts could not be resolved: org.apache.rocketmq:a:jar:5.1.1: "
        "Cannot access central in offline mode -> [Help 1]\n[ERROR]\n"
    )
    assert maven.why_none(offline) == (
        "Maven has no jars: org.apache.rocketmq:a:jar:5.1.1: Cannot access central in offline mode"
    )
    assert maven.why_none("some noise\nit is broken\n\x1b[0m\n") == "Maven has no jars: it is broken"
    assert maven.why_none("") == "Maven has no jars: no reason given"
