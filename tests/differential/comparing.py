"""When two answers are the same, and the exceptions to that, each by the name that docs/compatibility.md gives it."""

from collections.abc import Collection

from nemesrv.remoting import fastjson
from nemesrv.remoting.codes import V4_9_8, RequestCode, SerializeType
from nemesrv.remoting.command import RemotingCommand
from nemesrv.remoting.errors import RemoteProtocolError
from nemesrv.remoting.frame import decode_frame
from nemesrv.remoting.node.profile import Profile
from nemesrv.remoting.properties import parse_properties

from .peers import V4_9_7

EXCEPTIONS = {
    "answer-type": "a ROCKETMQ request to a 5.x server is answered with a JSON header there, with its own type here",
    "list-order": "lists have hash order there",
    "hash-choice": "where RocketMQ takes whatever its hash table has first, any one will do",
    "reset-race": "a reset channel takes one broker of several or two, by a race, in 5.x",
    "missing-field": "a required header field that is missing is refused here",
    "bad-value": "a setting with a bad value is refused here",
    "undecodable-body": "the remark of a body that cannot be decoded has a Java stack element there",
    "jar-4.9.7": "4.9.8's NameServer was never published: version number and black list are 4.9.8's here",
    "settings-text": "settings are read as Latin-1 and listed without escapes there",
    "own-keys": "ports, paths and the settings that only one of the two has",
}

_OWN_KEYS = {"listenPort", "kvConfigPath", "configStorePath", "rocketmqHome"}
_THEIR_VERSION, _OUR_VERSION = b'"version":%d}' % V4_9_7, b'"version":%d}' % V4_9_8


class Different(AssertionError):
    """Two answers differ, and nothing excuses it."""


def opaque_of(frame: bytes) -> int:
    return decode_frame(frame).opaque


def compare(
    profile: Profile, request: RemotingCommand, theirs: bytes, ours: bytes, *, allowed: Collection[str] = ()
) -> set[str]:
    """The exceptions that it took for two answers to be the same, of those `allowed` for this request. Different."""
    if theirs == ours:
        return set()
    if profile is Profile.V4_9 and theirs[4] == SerializeType.JSON:
        header_end = 8 + int.from_bytes(theirs[5:8], "big")
        theirs = theirs[:header_end].replace(_THEIR_VERSION, _OUR_VERSION) + theirs[header_end:]
        if theirs == ours:
            return {"jar-4.9.7"}
    return _compare(profile, request, decode_frame(theirs), decode_frame(ours), set(allowed))


def _compare(
    profile: Profile, request: RemotingCommand, theirs: RemotingCommand, ours: RemotingCommand, allowed: set[str]
) -> set[str]:
    used: set[str] = set()

    def excuse(name: str, what: str) -> None:
        if name not in allowed:
            raise Different(f"{what}\nasked  {request}\ntheirs {theirs}\nours   {ours}")
        used.add(name)

    allowed |= {"list-order"}
    if profile is Profile.V4_9:
        allowed.add("jar-4.9.7")
    if request.serialize_type is SerializeType.ROCKETMQ and (profile is Profile.V5_X or "undecodable-body" in allowed):
        allowed.add("answer-type")  # 4.9 does so where its processor throws
    if theirs.serialize_type is not ours.serialize_type:
        excuse("answer-type", "serialize types differ")
    if theirs.version != ours.version:
        excuse("jar-4.9.7" if theirs.version == V4_9_7 else "none", "versions differ")
    for field in ("code", "remark"):
        if getattr(theirs, field) != getattr(ours, field):
            one_of = [n for n in ("missing-field", "bad-value", "undecodable-body", "jar-4.9.7") if n in allowed]
            if "jar-4.9.7" in one_of and request.code != RequestCode.UPDATE_NAMESRV_CONFIG:
                one_of.remove("jar-4.9.7")
            excuse(one_of[0] if one_of else "none", f"{field} differs")
    if used & {"missing-field", "bad-value"}:
        return used
    binary = SerializeType.ROCKETMQ in (theirs.serialize_type, ours.serialize_type)
    if theirs.ext_fields != ours.ext_fields and not (binary and not theirs.ext_fields and not ours.ext_fields):
        excuse("undecodable-body" if "undecodable-body" in used else "none", "extFields differ")
    if (theirs.flag, theirs.language, theirs.opaque) != (ours.flag, ours.language, ours.opaque):
        raise Different(f"flag, language or opaque differ\nasked  {request}\ntheirs {theirs}\nours   {ours}")
    if theirs.body != ours.body:
        excuse(_body_exception(profile, request.code, theirs.body, ours.body), "bodies differ")
    return used


def _body_exception(profile: Profile, code: int, theirs: bytes, ours: bytes) -> str:
    """What would excuse that the bodies are not equal; "none" when nothing can."""
    if code == RequestCode.GET_NAMESRV_CONFIG:
        own = _OWN_KEYS | ({"configBlackList"} if profile is Profile.V4_9 else set())
        plain = "".join(f"{key}={value}\n" for key, value in parse_properties(ours).items())
        one, other = (
            sorted(line for line in text.split("\n") if line.partition("=")[0] not in own)
            for text in (theirs.decode(), plain)
        )
        if one != other:
            return "none"
        return "own-keys" if plain == ours.decode() else "settings-text"
    if sorted(theirs) != sorted(ours):  # the same characters in another order, or something is spelt differently
        return "none"
    try:
        same = canonical(fastjson.loads(theirs)) == canonical(fastjson.loads(ours))
    except RemoteProtocolError:
        return "none"
    return "list-order" if same else "none"


def canonical(value: object) -> object:
    """Equal for values that differ in the order of lists and of names only."""
    if isinstance(value, dict):
        return {key: canonical(item) for key, item in sorted(value.items())}
    if isinstance(value, list):
        return sorted((canonical(item) for item in value), key=repr)
    return value
