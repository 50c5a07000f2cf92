"""`nemesrv fault`: injects a fault into a running cluster, with the keys of a scenario's timeline
(live/fault_door.py)."""

import json
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..errors import HarnessError, ScenarioError, one_of
from ..live import DOOR, UPS
from ..shapes import is_shape
from .options import Number, WholeNumber

CALL_LIMIT_S = 120.0


@click.command()
@click.argument("do", metavar="DO")
@click.argument("targets", nargs=-1, metavar="[LINK|NODE|HOST|FAULT]...")
@click.option(
    "--for",
    "for_s",
    type=Number(min=0, min_open=True, max=100_000),
    help="Seconds of RocketMQ time after which the fault ends.",
)
@click.option(
    "--stream",
    help="Direction: upstream (from the node that connects), downstream (to that node) or both (default).",
)
@click.option("--latency-ms", type=Number(0), help="Only for the fault `latency`: delay in milliseconds.")
@click.option("--jitter-ms", type=Number(0), help="Only for `latency`: largest random change in ms (default: 0).")
@click.option("--rate-kb-s", type=WholeNumber(0), help="Only for the fault `bandwidth`: kilobytes per second.")
@click.option(
    "--run",
    "run_dir",
    type=click.Path(path_type=Path),
    help="Run folder of the cluster that gets the fault (default: the newest in runs/up whose cluster is running).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the cluster's answer to the command DO as JSON.")
def fault(
    do: str, targets: tuple[str, ...], for_s: float | None, run_dir: Path | None, as_json: bool, **numbers: Any
) -> None:
    """Inject a fault into a cluster of `nemesrv up`. The fault is recorded and judged like a fault of a scenario.

    \b
    nemesrv fault black_hole "broker-a <-> ns-0" --for 155
    nemesrv fault latency "external <-> ns-1" --latency-ms 500
    nemesrv fault kill ns-1            (other faults: stop, pause; restart and resume end them)
    nemesrv fault lose_host b --for 90 (other faults: isolate_host, pause_host; return_host ends them)
    nemesrv fault heal                 (end all faults of links; heal LINK: LINK's faults; heal black_hole-1: one fault)
    nemesrv fault list

    Exit status: 0 done, 2 the command DO is not possible (now, or in this cluster), 4 DO failed, or no cluster of
    `nemesrv up` answers.
    """
    request: dict[str, Any] = {"do": do, **{name: value for name, value in numbers.items() if value is not None}}
    links = [target for target in targets if "->" in target or "<-" in target or is_shape(target)]
    others = [target for target in targets if target not in links]
    kind = "faults" if do == "heal" else "hosts" if do.endswith("_host") else "nodes"
    named = (("links", links), (kind, others))
    request |= {name: targets for name, targets in named if targets}
    if for_s is not None:
        request["for_s"] = for_s
    _refuse_what_cannot_be(do, others)
    answer = ask(run_dir or newest_up(UPS), request)
    if "error" in answer:
        if answer.get("status") == 2:
            raise click.ClickException(answer["error"])
        raise HarnessError(answer["error"])
    click.echo(json.dumps(answer) if as_json else _said(do, for_s, answer))


def _refuse_what_cannot_be(do: str, targets: list[str]) -> None:
    """Raise ScenarioError for an impossible act, or one without its nodes or hosts, before a cluster is looked for."""
    if do == "list":
        return
    from ..faults.kinds import ACTIONS

    if do not in ACTIONS:
        raise ScenarioError("nemesrv fault", "DO", repr(do), one_of([*ACTIONS, "list"], do))
    acts_on = ACTIONS[do].acts_on
    if acts_on in ("nodes", "hosts") and ACTIONS[do].needs_targets and not targets:
        raise ScenarioError("nemesrv fault", do, f"it needs a {acts_on.removesuffix('s')}", "")


def _said(do: str, for_s: float | None, answer: dict[str, Any]) -> str:
    at = f"{answer['at_s']:.1f} s"
    if "faults" in answer:
        shown = [f"{each['fault_id']:<16}{each['fault']:<12}{each['on']}" for each in answer["faults"]]
        return "\n".join(shown) if shown else f"{at}  no fault is in force"
    ends = "" if for_s is None else f", for {for_s:g} s"
    return f"{at}  {', '.join(answer['begun']) or do}{ends}"


def ask(run_dir: Path, request: Mapping[str, Any]) -> dict[str, Any]:
    """Send the request to the cluster that runs in this run folder, and return its answer. Raises HarnessError if no
    cluster runs in the folder."""
    gone = f"no cluster is up in {run_dir}: start one with `nemesrv up`, or name its run folder with --run"
    try:
        door = json.loads((run_dir / DOOR).read_text(encoding="utf-8"))
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(CALL_LIMIT_S)
            connection.connect(door["socket"])
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile("rb") as answers:
                answer: dict[str, Any] = json.loads(answers.readline())
    except TimeoutError as exc:
        raise HarnessError(f"the cluster in {run_dir} did not answer within {CALL_LIMIT_S:g} s") from exc
    except (OSError, ValueError, KeyError) as exc:
        raise HarnessError(gone) from exc
    return answer


def newest_up(root: Path) -> Path:
    """Return the run folder of the newest running cluster under `root`; HarnessError if no cluster runs."""
    for door in sorted(root.glob(f"*/{DOOR}"), key=lambda path: path.stat().st_mtime, reverse=True):
        try:
            pid = int(json.loads(door.read_text(encoding="utf-8"))["pid"])
            os.kill(pid, 0)
        except (OSError, ValueError, KeyError):
            continue
        return door.parent
    raise HarnessError(f"no cluster is up in {root}: start one with `nemesrv up`, or name its run folder with --run")
