"""verdicts as JUnit XML: one test case a check, coloured by CI servers.

INVALID is a failure, UNKNOWN an error; what was left out is skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from xml.etree import ElementTree as ET

from ..verdict import Validity, Verdict
from .sentences import wrong_sentence

_NONE: Mapping[str, str] = {}
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(scenario: str, seed: int, verdicts: Sequence[Verdict], left_out: Mapping[str, str] = _NONE) -> bytes:
    """The XML document, UTF-8."""
    suite = ET.Element(
        "testsuite",
        name=f"nemesrv.{scenario}",
        tests=str(len(verdicts) + len(left_out)),
        failures=str(sum(v.verdict is Validity.INVALID for v in verdicts)),
        errors=str(sum(v.verdict is Validity.UNKNOWN for v in verdicts)),
        skipped=str(len(left_out)),
    )
    properties = ET.SubElement(suite, "properties")
    ET.SubElement(properties, "property", name="seed", value=str(seed))
    for verdict in verdicts:
        case = ET.SubElement(suite, "testcase", classname=f"nemesrv.{scenario}", name=verdict.name)
        detail = _clean(json.dumps(verdict.to_json(), indent=1, default=str, ensure_ascii=False))
        if verdict.verdict is Validity.INVALID:
            message = f"{wrong_sentence(verdict) or verdict.why} ({verdict.violations} of {verdict.examined} examined)"
            ET.SubElement(case, "failure", message=_clean(message), type="INVALID").text = detail
        elif verdict.verdict is Validity.UNKNOWN:
            ET.SubElement(case, "error", message=_clean(verdict.why), type="UNKNOWN").text = detail
        else:
            ET.SubElement(case, "system-out").text = detail
    for name, why in left_out.items():
        case = ET.SubElement(suite, "testcase", classname=f"nemesrv.{scenario}", name=name)
        ET.SubElement(case, "skipped", message=_clean(why))
    root = ET.Element("testsuites")
    root.append(suite)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _clean(text: str) -> str:
    return _NOT_XML.sub("�", text)
