"""mqadmin's subcommands, all of 4.9.8 and of 5.3.3, against our cluster: what works, and what is refused.

docs/compatibility.md says why. NEMESRV_INTEROP_SERVERS=apache: against Apache's, which refuse some, too.
"""

import json
import re
from pathlib import Path

import pytest

from .conftest import CLIENTS, PREFIX, World, need
from .mqadmin import SOURCE, MQAdmin
from .programs import java_source
from .waiting import eventually

pytestmark = pytest.mark.java

WORK = """
updateTopic -c {cluster} -t made => create topic to {broker} success
updateTopicPerm -c {cluster} -t made -p 4 => update topic perm from 6 to 4 in {broker} success
topicRoute -t {topic} => "brokerName":"broker-a"
topicRoute -t {topic} -l => broker-a
topicStatus -t {topic} => broker-a
topicClusterList -t {topic} => {cluster}
topicList => {topic}
topicList -c => {group}
updateOrderConf -t {topic} -m put -v broker-a:4 => update orderConf success
updateOrderConf -t {topic} -m get => orderConf=[broker-a:4]
updateOrderConf -t {topic} -m delete => delete orderConf success
statsAll => {group}
statsAll -t {topic} => {topic}
statsAll -a => Accumulation
allocateMQ -t {topic} -i 192.0.2.1,192.0.2.2 => "brokerName":"broker-a"
checkMsgSendRT -t {topic} -a 3 => true
updateSubGroup -c {cluster} -g made => create subscription group to {broker} success
getConsumerConfig -g made => made
deleteSubGroup -c {cluster} -g made => delete subscription group [made] from broker [{broker}]
deleteTopic -c {cluster} -t made => delete topic [made] from NameServer success
clusterList => {broker}
clusterList -m => broker-a
brokerStatus -b {broker} => bootTimestamp
brokerStatus -c {cluster} => bootTimestamp
getBrokerConfig -b {broker} => brokerName
updateBrokerConfig -b {broker} -k maxMessageSize -v 4194304 => update broker config success
brokerConsumeStats -b {broker} => {group}
sendMsgStatus -b broker-a -c 2 => SEND_OK
producer -b {broker} => {prefix}-producers
producerConnection -g {prefix}-producers -t {topic} => JAVA
consumerConnection -g {group} => JAVA
consumerProgress -g {group} => broker-a
consumerProgress -g {group} -s true => broker-a
consumerProgress => {group}
consumerStatus -g {group} => ConsumerRunningInfoFile
consumerStatus -g {group} -s => ConsumerRunningInfoFile
queryMsgById -i {offset_id}{in_topic} => [last-0]
queryMsgByKey -t {topic} -k last-0 => {id}
queryMsgByUniqueKey -t {topic} -i {id} => [last-0]
queryMsgByOffset -t {topic} -b {last_broker} -i {queue} -o {offset} => [last-0]
queryCq -t {topic} -q {queue} -i {offset} -b {last_address} => ConsumeQueueData
printMsg -t {topic} => last-0
printMsgByQueue -t {topic} -a {last_broker} -i {queue} -p true => last-0
sendMessage -t {topic} -p by-hand -k by-hand => SEND_OK
consumeMessage -t {topic} -b broker-a -i 0 -c 1 => Consume ok
updateSubGroup -c {cluster} -g {prefix}-cloned => success
cloneGroupOffset -s {group} -d {prefix}-cloned -t {topic} => clone group offset success
resetOffsetByTime -g {prefix}-cloned -t {topic} -s now => timestamp
skipAccumulatedMessage -g {prefix}-cloned -t {topic} => broker
updateKvConfig -s space -k key -v value => create or update kv config to namespace success
deleteKvConfig -s space -k key => delete kv config from namespace success
wipeWritePerm -b broker-b => OK
addWritePerm -b broker-b => OK
getNamesrvConfig => {name_server}
updateNamesrvConfig -k orderMessageEnable -v true => update name server config success
cleanExpiredCQ -b {broker} => success
deleteExpiredCommitLog -b {broker} => success
cleanUnusedTopic -b {broker} => success
exportMetadata -c {cluster} -f {folder} => success
exportConfigs -c {cluster} -f {folder} => success
exportMetrics -c {cluster} -f {folder} => success
"""
WORK_SINCE_5 = """
updateTopicList -c {cluster} -f {folder}/topics.json => submit batch of topic config to {broker} success
topicStatus -t listed => broker-b
updateSubGroupList -c {cluster} -f {folder}/groups.json => submit batch of subscription group config to {broker} success
getConsumerConfig -g listed => listed
haStatus -b {broker} => #SlaveNum
resetMasterFlushOffset -b {broker} -o 0 => reset master flush offset to 0 success
"""
GOES_ON = "clusterRT -a 2 -i 1"
REFUSED_IN_4 = """
updateAclConfig -b {broker} -a accesskey -s secretkey
updateGlobalWhiteAddr -b {broker} -g 192.0.2.1
clusterAclConfigVersion -b {broker}
deleteAclConfig -b {broker} -a accesskey
"""
REFUSED_IN_5 = """
setConsumeMode -c {cluster} -t made -g made -m POP -q 1
exportPopRecord -b {broker}
updateStaticTopic -c {cluster} -t static -qn 4
getBrokerEpoch -b broker-a
getColdDataFlowCtrInfo -b {broker}
updateColdDataFlowCtrGroupConfig -b {broker} -g {group} -v 1000
removeColdDataFlowCtrGroupConfig -b {broker} -g {group}
setCommitLogReadAheadMode -b {broker} -m 0
checkRocksdbCqWriteProgress -c {cluster}
rocksDBConfigToJson -t topics -c {cluster}
createUser -b {broker} -u me -p secret
updateUser -b {broker} -u me -p other
getUser -b {broker} -u me
listUser -b {broker}
copyUser -f {broker} -t {other} -u me
deleteUser -b {broker} -u me
createAcl -b {broker} -s User:me -r Topic:x -a Pub -d Allow
updateAcl -b {broker} -s User:me -r Topic:x -a Sub -d Allow
getAcl -b {broker} -s User:me
listAcl -b {broker}
copyAcl -f {broker} -t {other} -s User:me
deleteAcl -b {broker} -s User:me
"""


NOT_TRIED_IN_4 = "startMonitoring"  # it writes to its log only
NOT_TRIED_IN_5 = f"""{NOT_TRIED_IN_4}
remappingStaticTopic
exportMetadataInRocksDB dumpCompactionLog
getSyncStateSet electMaster getControllerMetaData getControllerConfig updateControllerConfig cleanBrokerMetadata
addBroker removeBroker
"""
"""A mapping of static topics, files of Apache's own, a controller, a container: docs/compatibility.md."""


def subcommands(profile: str) -> tuple[set[str], set[str], set[str]]:
    """mqadmin's that work at a cluster of ours, those that it refuses, and those that are not tried."""
    new, refused, not_tried = ("", REFUSED_IN_4, NOT_TRIED_IN_4)
    if profile == "5.x":
        new, refused, not_tried = WORK_SINCE_5, REFUSED_IN_5, NOT_TRIED_IN_5
    work = WORK + new + GOES_ON + "\nqueryMsgTraceById"  # which test_clients.py asks
    work_, refused_ = ({line.split()[0] for line in lines.splitlines() if line} for lines in (work, refused))
    return work_, refused_, {*not_tried.split()}


def _words(world: World, folder: Path) -> dict[str, object]:
    """What stands in braces above."""
    sent = next(line.split("\t") for line in world.clients.lines if line.startswith("SEND\tlast\t"))
    _, _, _, _, id_, offset_id, last_broker, queue, offset = sent
    topic = f"{PREFIX}-topic"
    ids = {"id": id_, "offset_id": offset_id, "last_broker": last_broker, "queue": queue, "offset": offset}
    return {
        **{"cluster": "DefaultCluster", "topic": topic, "group": f"{PREFIX}-all", "prefix": PREFIX, "folder": folder},
        **{"broker": world.brokers["broker-a"], "other": world.brokers["broker-b"], "name_server": world.name_server},
        **{"last_address": world.brokers[last_broker], "in_topic": f" -t {topic}" * (world.profile == "5.x"), **ids},
    }


def _said(world: World, line: str) -> str:
    command, *arguments = line.split()
    return world.mqadmin(command, "-n", world.name_server, *arguments)


@pytest.mark.nightly("test_each_that_mqadmin_lists_works_is_refused_or_is_not_tried")
def test_what_an_operator_asks_for_is_done(world: World, tmp_path: Path) -> None:
    topics = [{"topicName": "listed", "readQueueNums": 2, "writeQueueNums": 2}]
    (tmp_path / "topics.json").write_text(json.dumps(topics))
    (tmp_path / "groups.json").write_text(json.dumps([{"groupName": "listed"}]))

    def received() -> None:
        assert any(line.startswith("RECEIVE\tall\tlast-0") for line in list(world.clients.lines))

    eventually(received, within_s=45)
    wrong = {}
    for line in [*WORK.split("\n")[1:-1], *(WORK_SINCE_5.split("\n")[1:-1] if world.profile == "5.x" else ())]:
        command, _, expected = line.format(**_words(world, tmp_path)).partition(" => ")
        said = _said(world, command)
        if expected not in said or "Exception" in said:
            wrong[command] = said[:300]
    assert wrong == {}


@pytest.mark.nightly("test_each_that_mqadmin_lists_works_is_refused_or_is_not_tried")
def test_what_is_not_there_is_refused_in_words(world: World, tmp_path: Path) -> None:
    for line in (REFUSED_IN_4 if world.profile == "4.9" else REFUSED_IN_5).strip().splitlines():
        said = _said(world, line.format(**_words(world, tmp_path)))
        assert "request type" in said, (line, said)
        assert "not supported" in said


@pytest.mark.nightly("test_each_that_mqadmin_lists_works_is_refused_or_is_not_tried")
def test_what_goes_on_until_it_is_stopped_goes_on(world: World, tmp_path: Path) -> None:
    with java_source("mqadmin", tmp_path, CLIENTS[world.profile], SOURCE) as program:
        program.wait_for("READY")
        program.say("\t".join([*GOES_ON.split(), "-n", world.name_server]))
        first = program.wait_for("DefaultCluster")
        program.wait_for("DefaultCluster", after=first + 1)


@pytest.mark.parametrize("profile", CLIENTS)
def test_each_that_mqadmin_lists_works_is_refused_or_is_not_tried(profile: str, tmp_path: Path) -> None:
    need(CLIENTS[profile])
    listed = re.findall(r"^ {3}(\w+) ", MQAdmin("mqadmin", tmp_path, CLIENTS[profile])(), re.MULTILINE)
    assert sorted(listed) == sorted(name for names in subcommands(profile) for name in names)
