"""`nemesrv doctor` says why a client finds no route, by asking the servers or by reading logs. Read-only.

    TOPIC -n …   ask_servers ─► ServerAnswers ─► causes     LOGS…   diagnosed ─► Diagnosis, with its causes

Exit status: 0 if nothing is wrong (all NameServers route the topic to the same brokers, or no log has a failed
look-up), 1 if a cause is certain, 3 if a cause is only likely or a failed look-up has no known cause, 4 if no
NameServer answered.
"""

import asyncio
import dataclasses
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from pathlib import Path

from ...chaos.errors import ScenarioError, nearest
from ...chaos.logs.files import LogError
from ...chaos.logs.reading import OF_A_RUN, are_large
from ...chaos.logs.stream import FileRead
from ...chaos.reports.imported import capital, ended_before, suffered_lines
from ...remoting.node.network import Address
from ...remoting.node.this_machine import on_this_machine
from ...remoting.topics import is_own
from ..inferring.conditions import UNKNOWN, Condition
from ..inferring.episodes import episodes_of
from ..inferring.said import Hearing, all_heard, text_at
from ..inferring.suffering import Suffered, suffered
from ..logs_to_rows.gather import gather, not_quoted
from ..logs_to_rows.line import zone_text
from ..logs_to_rows.reconstruct import reconstruct
from ..logs_to_rows.sources import CLIENT, kind_by_name
from ..logs_to_rows.timeline import wall_text
from .answer_causes import is_routed_everywhere
from .causes import NoRouteCause, numbered_lines
from .log_causes import causes_in
from .logged import LOOK_UPS, Failure, Logged, logged
from .probable import is_well, probable
from .server_answers import NameServerAnswer, Questions, ServerAnswers, require_an_answer

HEALTHY, CERTAIN, LIKELY = 0, 1, 3
FAILURES_SHOWN = 10


# --- a live cluster


def ask_servers(
    topic: str, name_servers: Sequence[Address], *, brokers: Sequence[Address] = (), group: str | None = None
) -> ServerAnswers:
    """Return the NameServers' and brokers' answers about a topic. Raises HarnessError if no NameServer answers."""

    async def ask() -> ServerAnswers:
        async with aclosing(Questions(on_this_machine("doctor"), name_servers)) as reader:
            return await reader.ask(topic, brokers=brokers, group=group)

    answers = asyncio.run(ask())
    require_an_answer({server.address: server.why for server in answers.name_servers})
    return answers


def status_of(answers: ServerAnswers, causes: Sequence[NoRouteCause]) -> int:
    """Return doctor's exit status. If all NameServers route the topic, a JSON dialect that only some clients cannot
    read is no cause."""
    if any(cause.certain for cause in causes):
        return CERTAIN
    if is_routed_everywhere(answers) and all(cause.name.startswith("dialect") for cause in causes):
        return HEALTHY
    return LIKELY


def lines_of(answers: ServerAnswers, causes: Sequence[NoRouteCause]) -> list[str]:
    """Return the text that doctor prints: each NameServer's answer, then the causes, certain causes first."""
    lines = [f"{server.address}  {_said(server)}" for server in answers.name_servers]
    if is_routed_everywhere(answers) and not any(cause.certain for cause in causes):
        lines.append(
            "every NameServer routes it to the same brokers; a client without it has another list or namespace"
        )
    return lines + numbered_lines(causes)


def _said(server: NameServerAnswer) -> str:
    if server.why is not None:
        return f"no answer: {server.why}"
    if server.route is not None:
        queues = ", ".join(
            f"{row.broker_name} {row.read_queue_nums}/{row.write_queue_nums} perm {row.perm}"
            for row in sorted(server.route.queue_datas, key=lambda row: row.broker_name)
        )
        return f"routes it to {queues}"
    held = f"{len(server.brokers)} broker{'' if len(server.brokers) == 1 else 's'}"
    remark = (server.remark or "no remark").splitlines()[0]
    return f"code {server.code} ({remark}); it holds {held}"


def as_json(answers: ServerAnswers, causes: Sequence[NoRouteCause]) -> str:
    """Return the JSON text that doctor prints: the topic, each NameServer's answer, and the causes."""
    answered = [
        {
            "name_server": server.address,
            "code": server.code,
            "why": server.why,
            "brokers": sorted(server.brokers),
            "routed": sorted(server.routed),
        }
        for server in answers.name_servers
    ]
    found = [cause.to_json() for cause in causes]
    return json.dumps({"topic": answers.topic, "name_servers": answered, "causes": found}, ensure_ascii=False)


# --- logs


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    logs: Logged
    causes: Sequence[NoRouteCause] = ()
    unknown: Sequence[str]
    """Failures that these logs do not explain."""
    notes: Sequence[str]
    """What could not be read."""
    topic: str | None
    answer: Condition
    """The most probable cause of the clients' trouble."""
    suffering: Sequence[Suffered] = ()
    """What clients suffered, whatever the topic."""
    ended: Sequence[str] = ()
    """A line for each client whose log ends before the fault."""
    quotes_client: bool = False
    """Whether the answer quotes a log that is no server's."""
    partly: str = ""
    """A sentence that says so, if most of the files were not understood, or some are of another cluster."""
    unread: Sequence[str] = ()
    """Clients' logs that were not understood."""

    @property
    def failures(self) -> list[Failure]:
        return [each for each in self.logs.failures if self.topic in (None, each.topic)]

    @property
    def status(self) -> int:
        told = not is_well(self.answer) and (self.topic is None or self.answer.name != UNKNOWN)
        if any(cause.certain for cause in self.causes) or (told and self.answer.certainty == "certain"):
            return CERTAIN
        return LIKELY if self.causes or self.unknown or told or self.unread else HEALTHY

    @property
    def lines(self) -> list[str]:
        """Return the text that doctor prints about logs: the probable cause, the failed look-ups, the causes found for
        these look-ups, and the failures that these logs do not explain."""
        failures = self.failures
        lines = [*filter(None, [self.partly]), *self.answer.told]
        lines += (_failed(self.logs, each) for each in failures[:FAILURES_SHOWN])
        if len(failures) > FAILURES_SHOWN:
            lines.append(f"and {len(failures) - FAILURES_SHOWN} more")
        if self.suffering or self.ended:
            lines.append(f"what clients suffered, as their own logs say (times of day are {self.logs.zone})")
        hit = suffered_lines(one.to_json(self.logs.zone) for one in self.suffering)
        lines += (f"  {line}" for line in (*hit, *self.ended))
        if self.topic is not None and not failures:
            lines.append(f"no client's log here tells of a look-up of {self.topic} that failed")
        elif not failures and not self.suffering and not self.quotes_client and not self.unread:
            lines.append("no client's log here tells of a failed call, or of a route without a broker")
        if self.unread:
            logs = "1 client log was" if len(self.unread) == 1 else f"{len(self.unread)} client logs were"
            more = "what other clients suffered" if failures or self.suffering else "what clients suffered"
            lines.append(f"{more} is not known: {logs} not understood ({_some(self.unread)})")
        lines += numbered_lines(self.causes)
        lines += [f"not shown by these logs: {said}" for said in self.unknown]
        return [*lines, *(f"note: {note}" for note in self.notes)]

    @property
    def json(self) -> str:
        """Return the JSON object that doctor prints about logs: the probable cause, the failed look-ups, the causes
        found for these look-ups, and the failures that these logs do not explain."""
        failures = [
            {
                "client": each.client,
                "topic": each.topic,
                "name_server": each.name_server,
                "times": each.times,
                "from_ms": each.first.ms,
                "to_ms": each.last.ms,
                "file": each.first.file,
                "line": each.first.line,
            }
            for each in self.failures
        ]
        document = {
            "topic": self.topic,
            "partly": self.partly,
            "answer": self.answer.to_json(),
            "failures": failures,
            "suffered": [one.to_json(self.logs.zone) for one in self.suffering],
            "causes": [cause.to_json() for cause in self.causes],
            "not_shown": list(self.unknown),
            "notes": list(self.notes),
        }
        return json.dumps(document, ensure_ascii=False)


def diagnosed(
    places: Sequence[str | Path],
    topic: str | None = None,
    *,
    zones: Mapping[str, int] | None = None,
    offsets: Mapping[str, float] | None = None,
) -> Diagnosis:
    """Return why route look-ups failed, according to these logs. `zones` and `offsets` have the user's time zones and
    clock offsets, by log. Raises LogError if no log is RocketMQ's."""
    lines, files, notes, _, listeners = gather(None, places, LOOK_UPS if are_large(places) else None, Hearing)
    texts = all_heard(listeners)
    is_ours = bool(lines or texts.said or texts.in_words or texts.are_rocketmqs) or any(one.understood for one in files)
    if not is_ours:
        said = "; ".join(notes[:3]) or "no line with a time was understood"
        raise LogError(f"nothing to go by in {', '.join(map(str, places))}: {said}")
    found = reconstruct(lines, files, zones=zones, offsets=offsets)
    logs = logged(found, topic)
    if topic is not None:
        known = {*logs.holders, *(line.fields["topic"] for line in lines if line.fields.get("topic"))}
        if topic not in known and (clients := sorted(one for one in known - logs.registering if not is_own(one))):
            allowed = f"a topic that these logs name, such as {', '.join(clients[:10])}{nearest(topic, clients)}"
            raise ScenarioError("--topic", "", repr(topic), allowed)
    causes, unknown = causes_in(logs, topic)
    failures = [each for each in logs.failures if topic in (None, each.topic)]
    episodes = episodes_of(found.rows, timers=found.timers_used).episodes if found.found else []
    suffering = suffered(found, texts)
    document = {
        "origin": wall_text(found.origin_ms, found.zone),
        "sources": found.sources,
        "episodes": [one.to_json() for one in episodes],
        "suffered": [one.to_json(logs.zone) for one in suffering],
    }
    answer = probable(texts, found, episodes, causes, failures, suffering)
    shown = text_at(places, [where for where, text in answer.lines if not text])
    zone_ms = found.zone.utcoffset(None) / timedelta(milliseconds=1)
    answer = dataclasses.replace(
        answer,
        lines=[(where, text or shown.get(where, "")) for where, text in answer.lines],
        zones={file: zone_text(one.zone_ms) for one in found.found if one.zone_ms != zone_ms for file in one.files},
    )
    servers = {file for source in found.found if source.kind != CLIENT for file in source.files}
    notes = [*not_quoted(notes, _quoted(answer)), *(note for note in found.notes if note not in found.apart)]
    quotes_client = not _quoted(answer) <= servers
    if not lines and answer.name == UNKNOWN:  # a stack trace, an excerpt without times
        unknown = ["what happened: no line tells of a registration, a connection or a route"]
    unread = _unread_clients(files, {line.file for line in lines} | {one.file for one in texts.said}) if lines else []
    answer = dataclasses.replace(answer, is_over=answer.is_over and not unread)
    return Diagnosis(
        logs=logs,
        causes=causes,
        unknown=unknown,
        notes=notes,
        topic=topic,
        answer=answer,
        suffering=suffering,
        ended=[*ended_before(document)],
        quotes_client=quotes_client,
        partly=" ".join(filter(None, [*(f"{capital(note)}." for note in found.apart), _partly(files, answer)])),
        unread=unread,
    )


def _unread_clients(files: Sequence[FileRead], used: Collection[str]) -> list[str]:
    """Return the clients' logs, by their names, of which nothing is used and most lines were not understood."""
    unknown = (one.file for one in files if one.not_understood > one.understood and one.file not in used)
    return [file for file in unknown if kind_by_name(file) == CLIENT]


def _partly(files: Sequence[FileRead], answer: Condition) -> str:
    """Return a sentence about an answer that most of the files have no part in; "" for another answer."""
    full = [one for one in files if one.lines]
    heard = [one.file for one in full if one.understood or one.file in _quoted(answer)]
    if not heard or 2 * len(heard) >= len(full):
        return ""
    own = sum(note.endswith(OF_A_RUN) for one in full for note in one.notes)
    run = f" {own} are logs of a run of nemesrv: `nemesrv check RUN_DIR` judges the run." if own else ""
    return (
        f"{len(full) - len(heard)} of {len(full)} files were not understood: this answer is from {_some(heard)} alone, "
        f"and may name an effect of what the other files would show.{run}"
    )


def _quoted(answer: Condition) -> set[str]:
    return {where.rpartition(":")[0] for where, _ in answer.lines}


def _some(files: Sequence[str]) -> str:
    return ", ".join(files[:3]) + (f" and {len(files) - 3} more" if files[3:] else "")


def _failed(logs: Logged, failure: Failure) -> str:
    day = f"{datetime.fromtimestamp(failure.first.ms / 1000, logs.zone):%Y-%m-%d}"
    asked = "a NameServer" if failure.name_server is None else logs.called(failure.name_server)
    times = "once" if failure.times == 1 else f"{failure.times} times"
    what = f"{failure.topic} looked up {times} at {asked}, code 17"
    return f"{failure.client}: {what}, {day} {failure.span} {logs.zone}"
