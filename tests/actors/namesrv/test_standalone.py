"""`nemesrv namesrv` as a process on real sockets: boot line, exit statuses, one line for each failure."""

import signal
import socket
from pathlib import Path

import pytest

from nemesrv.actors.namesrv import standalone
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.frame import decode_frame, encode_frame
from nemesrv.remoting.node.network import Address
from tests.differential.wire import Channel
from tests.interop import programs


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_boots_serves_and_leaves_with_0_on_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    program, address = programs.name_server("ns", tmp_path / "ns", more={"listenprot": 1})
    with program:
        channel = Channel(Address.parse(address))
        channel.send(encode_frame(RemotingCommand.request(105, {"topic": "T"})))
        assert decode_frame(channel.frame()).code == 17
        assert program.terminate(number) == 0
        channel.close()
    assert program.lines == ["The Name Server boot success. serializeType=JSON"]
    assert "listenprot is no setting of a 4.9 NameServer and is ignored, did you mean listenPort?" in program.errors()
    assert "Traceback" not in program.errors()


def test_a_port_in_use_is_one_line_and_4(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "namesrv.conf"
    config.write_text("bindAddress=127.0.0.1\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert standalone.run(str(config), port) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"nemesrv namesrv: cannot listen on 127.0.0.1:{port}: ")
    assert err.count("\n") == 1


def test_wrong_files_and_settings_are_one_line_and_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert standalone.run(str(tmp_path / "none.conf"), None) == 2
    assert "none.conf: cannot be read: No such file or directory" in capsys.readouterr().err
    assert standalone.run(None, 70000) == 2
    assert "listenPort=70000" in capsys.readouterr().err
    path = tmp_path / "ns.conf"
    path.write_text("listenPort=high")
    assert standalone.run(str(path), None) == 2
    expected = f"nemesrv namesrv: {path}: listenPort=high is not allowed; expected a whole number from 0 to 65535\n"
    assert capsys.readouterr() == ("", expected)
    (tmp_path / "kv.json").write_text("}{")
    path.write_text(f"bindAddress=127.0.0.1\nkvConfigPath={tmp_path / 'kv.json'}\n")
    assert standalone.run(str(path), 0) == 2
    err = capsys.readouterr().err
    assert "kv.json: not a KV config file" in err
    assert err.count("\n") == 1
