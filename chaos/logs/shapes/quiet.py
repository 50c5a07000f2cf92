"""What is understood and bears nothing for who reads an incident: it is counted, and no event comes of it."""

from __future__ import annotations

import re

COMMON: tuple[tuple[str, str], ...] = (
    ("statistics", r"\[[A-Z0-9_]+\] (?:\[.*\] )?Stats In One (?:Minute|Hour|Day).*"),
    ("statistics", r"\[[A-Z0-9_]+\] (?:TotalPut|put_tps|get_found_tps|transferred_tps).*"),
    ("statistics", r"Port: \d+, (?:Request|Response)Code Distribution: .*"),
    ("statistics", r"findPutMessageEntireTimePX .*"),
    ("statistics", r"dispatch behind commit log -?\d+ bytes"),
    ("statistics", r"Slave fall behind master: -?\d+ bytes"),
    ("housekeeping", r"\[persistAll\] Group: .* updateConsumeOffsetToBroker .*"),
    ("housekeeping", r"Group: .* updateConsumeOffsetToBroker .*"),
    ("housekeeping", r"updateTopicPublishInfo prev is not null, .*"),
    ("housekeeping", r"HeartbeatData \[clientID=.*"),
    ("housekeeping", r"Try to (?:start|shutdown) service thread:.*"),
    ("housekeeping", r"Begin to check prepare message, .*"),
    ("housekeeping", r"End to check prepare message, .*"),
    ("housekeeping", r"Before check, the queue=.*"),
    ("housekeeping", r"No new message\. GetMessageStatus=.*"),
    ("housekeeping", r"The miss op offset=.*"),
    ("housekeeping", r"subscription changed, group: .*"),
    ("housekeeping", r"registerConsumer info changed .*"),
    ("housekeeping", r"Start service thread:.*"),
    ("housekeeping", r"instrumented a special java\.util\.Set into: .*"),
    ("housekeeping", r"Server is running in TLS .*"),
    ("housekeeping", r"Tls config file doesn't exist, skip it"),
    ("housekeeping", r"Log the final used tls related configuration"),
    ("housekeeping", r"Using JDK SSL provider"),
    ("housekeeping", r"SSLContext created for (?:server|client)"),
    ("housekeeping", r"Unknown channel option .*"),
    ("housekeeping", r"doRebalance, .*, add a new pull request .*"),
    ("housekeeping", r"skip revive topic because .*"),
    ("service_started", r"\S+ service started"),
)
"""What large logs are full of: it is passed over a block at a time."""

_OPENINGS = """\
brokerAddrTable
brokerLiveTable
clusterAddrTable
topicQueueTable
get route info by topic from product environment failed
join thread
makestop thread
shutdown thread
stop thread
* service end
* service has exception
* service raised an unexpected exception
* start service
* stop service
* too many requests and system thread pool busy
aclFilesNum:
load
Load
update topic config
update subscription group config
create new topic
create new subscription group
Create new topic
delete topic config
delete subscription group
update order topic config
update topic sys flag
updateAndCreateTopic called by
updateAndCreateSubscriptionGroup called by
deleteTopic called by
deleteSubscriptionGroup called by
updateBrokerConfig
AdminBrokerProcessor#
Broker receive request to
invoke cleanExpiredConsumeQueue
invoke cleanUnusedTopic
flush broker config
auto create a subscription group
unregister a producer
unregister a consumer
unregister consumer ok
ungister consumer ok
NETTY EVENT: remove
SCAN: remove expired channel from
ClientManageProcessor:
ConsumerGroupInfo:
[NOTIFYME]
[PROTECT_BROKER]
[MONITOR]
[reset-offset]
[get-consumer-status]
remove topic offset
clean group offset
the broker's subscription is not latest
the consumer's subscription not exist
the request topic not exist
the producer[* exist already
tryLock, message queue
tryLockBatch, message queue
unlockBatch
putMessage
slave fall behind master
CommitLog: slave fall behind master
Dispatch task fall behind commit log
registerBrokerAll Exception
BrokerController#
BrokerController:
Min broker changed
min broker id changed, prev
Failed to
Finish to change to
The broker does not enable acl
The broker dose not enable acl
register SendMessageHook
register ConsumeMessageHook
register sendMessage Hook
register consumeMessageHook
ScheduledTask
schedule
fetchNameServerAddr Exception
AllocateMapedFileService
create maped file
create mapedFile
create mappedFile
create new file
delete expired
destroy
physic disk
logics disk
disk space will be full soon
begin to delete before
Error when measuring disk space usage
ha housekeeping, found this connection
role change succ
Start transaction service!
scan for renewal done
receive request,
HAService receive new connection
HAClient
new HAConnection
slave[* request offset
master push
process read
Update slave Id
update master address
update master ha address
change state to
AutoSwitchHAClient
Change ha to
Slave report current offset
Master change state from
Change broker
Register state change to
Update controller leader address to
SyncStateSet changed from
Sync state set changed from
First time
All register process has been done
Start replicasManager success
Error happen when
Connections are insecure
Prepend SSL handler
SSL enabled for client
Handlers prepended
Clients intend to establish
client set
server set
invokeAsyncImpl tryAcquire
invokeOnewayImpl tryAcquire
closeChannel: close the channel exception
closeChannel exception
closeChannel: try to lock channel table
createChannel: create channel exception
createChannel: try to lock channel table
event queue size
execute callback in
excute callback in
executeInvokeCallback Exception
process request over, but response failed
scanResponseTable exception
Receive go away from
[SCAN] Addresses of name server is empty!
receive broker's notification
fix the pull request offset
the pull request offset illegal
the pull request[* is drop
the consumer message buffer is full
the cached message
the queue's messages, span too long
the message queue
message queue lock
unlock messageQueue
doRebalance
rebalanced allocate source
messageQueueChanged
remove unnecessary messageQueue offset
topicRouteTable.put TopicRouteData
updateTopicRouteInfoFromNameServer, getTopicRouteInfoFromNameServer return null
lock heartBeat, but failed
send heart beat to broker exception
unregister client
sendKernelImpl exception
consumeMessage
No matched consumer for the
Returned Previous
Created new ProduceAccumulator
send trace data
buffer full
Controller leader append
Append a initial log
Start scheduling controller events
Stop scheduling controller events
Start event scheduler
Notify broker role change failed
StateMachine
Configuration committed
Start following
Stop following
Save snapshot
node * Start Leader
node * Stop Leader
process event: term
broker * heart beat
get broker live info
has not received any heartbeat from broker
onBrokerCloseChannel
on broker
check not active broker
The certificate and private key changed
The trust certificate changed
Using OpenSSL provider
SslContext created for
Compressing takes
Decompressing takes
channelWrapper
interrupt
scanAvailableNameSrv
Netty fetch bootstrap
Get broker member group exception
Register topic contains illegal broker
Topic route already exist
Handle unregister broker request failed
start scan not active broker
current node is not leader
Event queue run event
Apply * events
load topic route from namesrv. topic:
reload topic route from namesrv
grpc server
"""
"""How lines of RocketMQ's own begin that say nothing of registrations, connections or routes; `*` stands for a name."""


def _seldom() -> tuple[tuple[str, str], ...]:
    def shape(opening: str) -> str:
        return re.escape(opening).replace(r"\*", r"\S+").replace(r"\ ", " ") + ".*"

    return tuple(("housekeeping", shape(opening)) for opening in _OPENINGS.splitlines())


SELDOM = (*_seldom(), ("separator", "-+"))
