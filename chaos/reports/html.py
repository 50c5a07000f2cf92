"""report.html: one self-contained page with the verdict table, what was allowed and measured, and the faults.

It needs no network and no script. Plain on purpose; the lanes and plots come with the report of a later version.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from string import Template

from ..verdict import Verdict, worst
from .values import phrases

_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>nemesrv: $scenario</title>
<style>
:root { color-scheme: light dark; --ok: #1a7f37; --bad: #cf222e; --unknown: #9a6700; --line: #8884; }
@media (prefers-color-scheme: dark) { :root { --ok: #3fb950; --bad: #ff7b72; --unknown: #d29922; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: .4rem .6rem;
border-bottom: 1px solid var(--line); } td.n { text-align: right; font-variant-numeric: tabular-nums; }
.VALID { color: var(--ok); font-weight: 600; } .INVALID { color: var(--bad); font-weight: 600; }
.UNKNOWN { color: var(--unknown); font-weight: 600; } dl { margin: 0; }
dt { float: left; clear: left; margin-right: .5rem; opacity: .7; } dd { margin: 0; overflow-wrap: anywhere; }
pre { overflow-x: auto; border: 1px solid var(--line);
padding: .6rem; } .why { opacity: .8; }
</style></head><body>
<h1><span class="$verdict">$verdict</span> $scenario</h1>
<p>$description</p>
<p>seed $seed, RocketMQ profile $profile, time scale $scale; all times are RocketMQ time.</p>
<h2>Checks</h2>
<table><thead><tr><th>check</th><th>verdict</th><th>examined</th><th>violations</th><th>measured</th><th>allowed</th></tr>
</thead><tbody>$rows</tbody></table>
<h2>Faults</h2>
$faults
$examples
<h2>Run it again</h2>
<pre>nemesrv run scenario.yaml</pre>
</body></html>
""")


def html_report(
    scenario: Mapping[str, object], verdicts: Sequence[Verdict], faults: Sequence[Mapping[str, object]]
) -> str:
    """The page. scenario: name, description, seed, profile, time_scale; faults: the history's `fault` rows in order."""
    return _PAGE.substitute(
        scenario=escape(str(scenario["name"])),
        description=escape(str(scenario.get("description") or "")),
        seed=escape(str(scenario.get("seed"))),
        profile=escape(str(scenario.get("profile"))),
        scale=escape(str(scenario.get("time_scale"))),
        verdict=str(worst(v.verdict for v in verdicts)),
        rows="".join(_row(v) for v in verdicts),
        faults=_faults(faults),
        examples="".join(_examples(v) for v in verdicts),
    )


def _row(v: Verdict) -> str:
    why = f'<div class="why">{escape(v.why)}</div>' if v.why else ""
    return (
        f'<tr><td>{escape(v.name)}{why}</td><td class="{v.verdict}">{v.verdict}</td><td class="n">{v.examined}</td>'
        f'<td class="n">{v.violations}</td><td>{_pairs(v.measured)}</td><td>{_pairs(v.allowed)}</td></tr>'
    )


def _pairs(values: Mapping[str, object]) -> str:
    items = (f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in phrases(values))
    return f"<dl>{''.join(items)}</dl>"


def _faults(faults: Sequence[Mapping[str, object]]) -> str:
    if not faults:
        return "<p>None.</p>"
    rows = "".join(
        "<tr><td class='n'>{:.2f} s</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>".format(
            float(str(row["time_ms"])) / 1000,
            escape(str(row.get("phase") or "")),
            escape(str(row.get("fault") or "")),
            escape(" → ".join(str(row[end]) for end in ("source", "target") if row.get(end))),
            escape(str(row.get("injection") or "")),
        )
        for row in faults
    )
    return (
        "<table><thead><tr><th>time</th><th>phase</th><th>fault</th><th>where</th><th>injected by</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _examples(v: Verdict) -> str:
    if not v.examples:
        return ""
    text = "\n".join(json.dumps(example, default=str, ensure_ascii=False) for example in v.examples)
    return f"<h2>{escape(v.name)}: examples</h2><pre>{escape(text)}</pre>"
