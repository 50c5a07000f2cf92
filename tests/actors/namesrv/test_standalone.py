"""`nemesrv namesrv` as a process on real sockets: boot line, exit statuses, one line for each failure."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nemesrv.actors.namesrv import standalone
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.frame import decode_frame, encode_frame

from ...free_port import free_port

START = "import sys; from nemesrv.actors.namesrv.standalone import run; sys.exit(run(sys.argv[1], int(sys.argv[2])))"


@contextmanager
def running(config: Path, port: int) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", START, str(config), str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"HOME": str(config.parent)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "namesrv.conf"
    path.write_text("bindAddress=127.0.0.1\nlistenprot=1\n")
    return path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_boots_serves_and_leaves_with_0_on_a_signal(config: Path, number: signal.Signals) -> None:
    port = free_port()
    with running(config, port) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "The Name Server boot success. serializeType=JSON\n"
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(encode_frame(RemotingCommand.request(105, {"topic": "T"})))
            assert decode_frame(connection.recv(65536)).code == 17
            process.send_signal(number)
            out, err = process.communicate(timeout=20)
        assert (process.returncode, out) == (0, "")
        assert "listenprot is no setting of a 4.9 NameServer and is ignored, did you mean listenPort?" in err
        assert "Traceback" not in err


def test_a_port_in_use_is_one_line_and_4(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert standalone.run(str(config), port) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"nemesrv namesrv: cannot listen on 127.0.0.1:{port}: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("listenPort=high", "listenPort=high is not allowed; expected a whole number from 0 to 65535"),
        ("a=\\u12", "line 1: "),
        ("profile=6", "profile=6 is not allowed; expected 4.9 or 5.x"),
    ],
)
def test_a_bad_setting_is_one_line_and_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, why: str
) -> None:
    path = tmp_path / "ns.conf"
    path.write_text(content)
    assert standalone.run(str(path), None) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"nemesrv namesrv: {path}: {why}")
    assert err.count("\n") == 1


def test_a_missing_file_a_bad_port_and_a_bad_kv_file_are_one_line_and_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert standalone.run(str(tmp_path / "none.conf"), None) == 2
    assert "none.conf: cannot be read: No such file or directory" in capsys.readouterr().err
    assert standalone.run(None, 70000) == 2
    assert "--listen-port=70000" in capsys.readouterr().err
    path = tmp_path / "ns.conf"
    (tmp_path / "kv.json").write_text("}{")
    path.write_text(f"bindAddress=127.0.0.1\nkvConfigPath={tmp_path / 'kv.json'}\n")
    assert standalone.run(str(path), 0) == 2
    err = capsys.readouterr().err
    assert "kv.json: not a KV config file" in err
    assert err.count("\n") == 1
