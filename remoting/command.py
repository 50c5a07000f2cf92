"""One request or response as a value, independent of its header type (JSON or ROCKETMQ). Upstream: `RemotingCommand`.
frame.py encodes a command. The transport sets `opaque`, and matches answers to requests by `opaque`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from .codes import FLAG_ONEWAY, FLAG_RESPONSE, V5_3_2, LanguageCode, ResponseCode, SerializeType
from .errors import ResponseError

DEFAULT_LANGUAGE = LanguageCode.PYTHON
DEFAULT_VERSION = V5_3_2
"""A request left at these two is given the language and version of the client or server that sends it."""


class Header(Protocol):
    """The fields of one kind of request or response (headers.py)."""

    def to_ext_fields(self) -> dict[str, str]: ...


@dataclass(slots=True)
class RemotingCommand:
    code: int
    language: LanguageCode | None = DEFAULT_LANGUAGE
    """None: the peer named a language that we do not know; its requests are served all the same."""
    version: int = DEFAULT_VERSION
    """The sender's MQVersion ordinal."""
    opaque: int = 0
    flag: int = 0
    remark: str | None = None
    ext_fields: dict[str, str] | None = None
    """None writes no extFields key; an empty dict writes `"extFields":{}`, as Java does for a header without values."""
    body: bytes = b""
    serialize_type: SerializeType = SerializeType.JSON

    @property
    def is_response(self) -> bool:
        return bool(self.flag & FLAG_RESPONSE)

    @property
    def is_oneway(self) -> bool:
        return bool(self.flag & FLAG_ONEWAY)

    @classmethod
    def request(
        cls,
        code: int,
        header: Header | Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        oneway: bool = False,
        version: int = DEFAULT_VERSION,
        language: LanguageCode = DEFAULT_LANGUAGE,
    ) -> RemotingCommand:
        """Make a request; the transport sets `opaque`."""
        flag = FLAG_ONEWAY if oneway else 0
        return cls(int(code), language, version, flag=flag, ext_fields=_ext_fields(header), body=body)

    @classmethod
    def response(
        cls,
        code: int = 0,
        remark: str | None = None,
        *,
        header: Header | Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> RemotingCommand:
        """Make a response; the transport sets opaque, serialize type, language and version."""
        return cls(int(code), flag=FLAG_RESPONSE, remark=remark, ext_fields=_ext_fields(header), body=body)


def _ext_fields(header: Header | Mapping[str, str] | None) -> dict[str, str] | None:
    if header is None:
        return None
    # not isinstance(header, Mapping): asking an abstract class costs more than the rest of this
    return header.copy() if type(header) is dict else _written(header)


def _written(header: Header | Mapping[str, str]) -> dict[str, str]:
    return header.to_ext_fields() if hasattr(header, "to_ext_fields") else dict(header)


def success(response: RemotingCommand) -> RemotingCommand:
    """Return `response`. Raises ResponseError if the response's code is not SUCCESS."""
    if response.code != ResponseCode.SUCCESS:
        raise ResponseError.for_code(response.code, response.remark)
    return response
