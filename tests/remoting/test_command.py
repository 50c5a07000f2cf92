"""RemotingCommand: what a request and a response are made of."""

from nemesrv.remoting.codes import LanguageCode, RequestCode, ResponseCode
from nemesrv.remoting.command import DEFAULT_VERSION, RemotingCommand
from nemesrv.remoting.headers.namesrv import GetRouteInfoRequestHeader
from nemesrv.remoting.node.profile import Profile


def test_a_request_carries_its_header_as_ext_fields() -> None:
    command = RemotingCommand.request(
        RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic="T"), b"body", version=409
    )
    assert command == RemotingCommand(105, LanguageCode.PYTHON, 409, ext_fields={"topic": "T"}, body=b"body")
    assert not command.is_response
    assert not command.is_oneway


def test_a_oneway_request_says_so_in_its_flag() -> None:
    command = RemotingCommand.request(RequestCode.UPDATE_CONSUMER_OFFSET, oneway=True)
    assert command.flag == 2
    assert command.is_oneway


def test_a_response_says_so_in_its_flag() -> None:
    command = RemotingCommand.response(ResponseCode.TOPIC_NOT_EXIST, "gone", header={"a": "b"})
    assert command == RemotingCommand(17, version=DEFAULT_VERSION, flag=1, remark="gone", ext_fields={"a": "b"})
    assert command.is_response


def test_a_command_s_ext_fields_are_its_own() -> None:
    shared = {"a": "b"}
    command = RemotingCommand.request(1, shared)
    shared["a"] = "c"
    assert command.ext_fields == {"a": "b"}


def test_a_profile_knows_its_version_and_where_its_questions_are_answered() -> None:
    assert [profile.version for profile in (Profile("4.9"), Profile("5.x"))] == [409, 479]
    assert Profile.V4_9.faq_url == "http://rocketmq.apache.org/docs/faq/"
