// A Go producer and consumers of every kind in one process, with the arguments, commands and lines of Clients.java.
package main

import (
	"bufio"
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	// since 2.1.2
	"github.com/apache/rocketmq-client-go/v2/admin"
	// end
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

type listener = func(context.Context, ...*primitive.MessageExt) (consumer.ConsumeResult, error)

var (
	servers primitive.NamesrvAddr = strings.Split(os.Args[1], ";")
	prefix                        = os.Args[2]
	ctx                           = context.Background()
	lock    sync.Mutex
	failed  sync.Map
	sends   rocketmq.Producer
)

func main() {
	say("READY")
	var all rocketmq.PushConsumer
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "send":
			sends = started("producers")
			send()
		case "consume":
			all = concurrent("all", "*")
			concurrent("tagged", "TagA || TagC")
		case "orderly":
			orderly()
		case "restart":
			must(all.Shutdown())
			one("again", message("topic", "again-0", "TagA", "after the restart"))
			concurrent("all", "*")
		case "filter":
			sql := consumer.MessageSelector{Type: consumer.SQL92, Expression: "TAGS = 'TagC' OR greeting IS NOT NULL"}
			listen("sql", "topic", sql, receives("sql"))
			say("FILTER", "started")
		case "transact":
			transact()
			// since 2.1.2
		case "lite":
			poll()
		case "pull":
			pull()
		case "request":
			request()
			// end
		default:
			say("DONE", in.Text(), "lacks")
			continue
		}
		say("DONE", in.Text())
	}
}

func send() {
	for i := 0; i < 8; i++ {
		one("sync", message("topic", fmt.Sprint("sync-", i), []string{"TagA", "TagB"}[i%2], fmt.Sprint("body ", i)))
	}
	var answers sync.WaitGroup
	for i := 0; i < 4; i++ {
		key := fmt.Sprint("async-", i)
		answers.Add(1)
		must(sends.SendAsync(ctx, func(_ context.Context, result *primitive.SendResult, err error) {
			defer answers.Done()
			sent("async", key, result, err)
		}, message("topic", key, "TagA", "body")))
	}
	answers.Wait()
	batch := []*primitive.Message{}
	for i := 0; i < 4; i++ {
		must(sends.SendOneWay(ctx, message("topic", fmt.Sprint("oneway-", i), "TagB", "body")))
	}
	for i := 0; i < 3; i++ {
		batch = append(batch, message("topic", fmt.Sprint("batch-", i), "TagC", "body"))
	}
	// before 2.1.2
	for _, each := range batch { // no server takes its batches: their header has no defaultTopicQueueNums
		one("batch", each)
	}
	// end
	// since 2.1.2
	result, err := sends.SendSync(ctx, batch...)
	sent("batch", "batch", result, err)
	// end
	one("big", message("topic", "big-0", "TagA", strings.Repeat("x", 10_000)))
	unicode := message("topic", "unicode-0", "TagA", "gr\u00fc\u00dfe \u6d88\u606f")
	unicode.WithProperty("greeting", "gr\u00fc\u00dfe")
	one("unicode", unicode)
	one("delayed", message("topic", "delayed-0", "TagB", "later").WithDelayTimeLevel(1))
	one("failing", message("topic", "failing-0", "TagB", "comes twice"))
	inOrder := started("in-order", producer.WithQueueSelector(producer.NewHashQueueSelector()))
	for i := 0; i < 10; i++ {
		key := fmt.Sprint("ordered-", i)
		result, err := inOrder.SendSync(ctx, message("ordered", key, "TagA", "body").WithShardingKey("one"))
		sent("ordered", key, result, err)
	}
	one("last", message("topic", "last-0", "TagA", "looked up"))
}

type transactions struct{}

func (transactions) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	return said(keyOf(message), 0)
}

func (transactions) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	times := message.GetProperty(primitive.PropertyTranscationCheckTimes)
	say("CHECKED", keyOf(message), message.Topic, times)
	return said(keyOf(message), int(times[0]-'0'))
}

func said(key string, times int) primitive.LocalTransactionState {
	states := map[string]primitive.LocalTransactionState{
		"commit": primitive.CommitMessageState, "rollback": primitive.RollbackMessageState, "unknow": primitive.UnknowState,
	}
	return states[strings.Split(key, "-")[times]]
}

func transact() {
	listen("transacted", "transacted", consumer.MessageSelector{}, receives("transacted"))
	own := producer.WithInstanceName("transactions") // checks reach the group that made the client instance
	p, err := rocketmq.NewTransactionProducer(transactions{}, of("transactions", own)...)
	must(err)
	must(p.Start())
	for _, key := range []string{"commit", "rollback", "unknow-commit", "unknow-unknow-commit", "unknow-rollback"} {
		result, err := p.SendMessageInTransaction(ctx, message("transacted", key, "TagA", key))
		must(err)
		say("TRANSACTION", key, status(result.SendResult))
	}
}

// since 2.1.2
func request() {
	replier := started("repliers")
	listen("asked", "asked", consumer.MessageSelector{}, func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, each := range messages {
			reply, err := consumer.CreateReplyMessage(each, nil)
			must(err)
			reply.Body = []byte("answer to " + keyOf(each)) // 2.1.2 reads a body as properties
			if _, err = replier.SendSync(ctx, reply); err != nil {
				say("FAILED", keyOf(each), err.Error())
			}
		}
		return consumer.ConsumeSuccess, nil
	})
	reply, err := sends.Request(ctx, 45*time.Second, message("asked", "question", "TagA", "?"))
	if err != nil {
		say("FAILED", "question", err.Error())
		return
	}
	say("REPLIED", string(reply.Body))
}

func pulls(group string) rocketmq.PullConsumer {
	first := consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset)
	c, err := rocketmq.NewPullConsumer(consumer.WithNameServer(servers), consumer.WithGroupName(prefix+"-"+group), first)
	must(err)
	must(c.Subscribe(prefix+"-topic", consumer.MessageSelector{}))
	must(c.Start())
	return c
}

func poll() {
	c := pulls("lite")
	go func() {
		for {
			if polled, err := c.Poll(ctx, time.Second); err == nil {
				_, _ = receives("lite")(ctx, polled.GetMsgList()...)
				c.ACK(ctx, polled, consumer.ConsumeSuccess)
			}
		}
	}()
}

// Everything that one pull consumer gets that asks each queue from its beginning to its end.
func pull() {
	c := pulls("pull")
	about, err := admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver(servers)))
	must(err)
	queues, err := about.FetchPublishMessageQueues(ctx, prefix+"-topic")
	must(err)
	var ends sync.WaitGroup
	for _, queue := range queues {
		ends.Add(1)
		go func(queue *primitive.MessageQueue) { // at its end the broker holds each pull for a while
			defer ends.Done()
			next := int64(0)
			result, err := c.PullFrom(ctx, queue, next, 2)
			for ; err == nil && result.Status == primitive.PullFound; result, err = c.PullFrom(ctx, queue, next, 2) {
				_, _ = receives("pull")(ctx, result.GetMessageExts()...)
				next = result.NextBeginOffset
			}
			must(err)
			told := map[primitive.PullStatus]string{primitive.PullNoNewMsg: "NO_NEW_MSG"}[result.Status]
			say("PULLED", told, fmt.Sprint(next), fmt.Sprint(result.MaxOffset))
		}(queue)
	}
	ends.Wait()
	must(c.Shutdown())
}

// end
func of(group string, more ...producer.Option) []producer.Option {
	return append([]producer.Option{producer.WithNameServer(servers), producer.WithGroupName(prefix + "-" + group)}, more...)
}

func started(group string, more ...producer.Option) rocketmq.Producer {
	p, err := rocketmq.NewProducer(of(group, more...)...)
	must(err)
	must(p.Start())
	return p
}

func message(topic, key, tag, body string) *primitive.Message {
	return primitive.NewMessage(prefix+"-"+topic, []byte(body)).WithTag(tag).WithKeys([]string{key})
}

// 2.0.0 sends a key with a space behind it.
func keyOf(message interface{ GetKeys() string }) string {
	return strings.TrimSpace(message.GetKeys())
}

func one(kind string, message *primitive.Message) {
	result, err := sends.SendSync(ctx, message)
	sent(kind, keyOf(message), result, err)
}

func sent(kind, key string, result *primitive.SendResult, err error) {
	if err != nil {
		say("FAILED", key, err.Error())
		return
	}
	queue := result.MessageQueue
	where := []string{queue.BrokerName, fmt.Sprint(queue.QueueId), fmt.Sprint(result.QueueOffset)}
	say(append([]string{"SEND", kind, key, status(result), result.MsgID, result.OffsetMsgID}, where...)...)
}

func status(result *primitive.SendResult) string {
	return map[primitive.SendStatus]string{primitive.SendOK: "SEND_OK"}[result.Status]
}

func reads(group string, more ...consumer.Option) rocketmq.PushConsumer {
	first := consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset)
	options := []consumer.Option{consumer.WithNameServer(servers), consumer.WithGroupName(prefix + "-" + group), first}
	c, err := rocketmq.NewPushConsumer(append(options, more...)...)
	must(err)
	return c
}

func listen(group, topic string, selector consumer.MessageSelector, f listener, more ...consumer.Option) rocketmq.PushConsumer {
	c := reads(group, more...)
	must(c.Subscribe(prefix+"-"+topic, selector, f))
	must(c.Start())
	return c
}

func receives(group string) listener {
	return func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, each := range messages {
			properties := []string{}
			for name := range each.GetProperties() {
				properties = append(properties, name)
			}
			sort.Strings(properties)
			numbers := fmt.Sprintf("%d\t%d\t%d", each.ReconsumeTimes, len(each.Body), crc32.ChecksumIEEE(each.Body))
			where := fmt.Sprintf("%s\t%d\t%d", each.Topic, each.Queue.QueueId, each.QueueOffset)
			about := []string{numbers, where, each.MsgId, each.GetProperty("greeting"), strings.Join(properties, ",")}
			say(append([]string{"RECEIVE", group, keyOf(each), each.GetTags()}, about...)...)
		}
		return consumer.ConsumeSuccess, nil
	}
}

// Each with an instance of its own, which ends with it.
func concurrent(group, tags string) rocketmq.PushConsumer {
	selector := consumer.MessageSelector{Type: consumer.TAG, Expression: tags}
	return listen(group, "topic", selector, func(of context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		_, _ = receives(group)(of, messages...)
		for _, each := range messages {
			if _, before := failed.LoadOrStore(group+keyOf(each), true); keyOf(each) == "failing-0" && !before {
				asked, _ := primitive.GetConcurrentlyCtx(of)
				asked.DelayLevelWhenNextConsume = 1
				return consumer.ConsumeRetryLater, nil
			}
		}
		return consumer.ConsumeSuccess, nil
	}, consumer.WithInstance(fmt.Sprint(group, time.Now().UnixNano())))
}

func orderly() {
	selector := consumer.MessageSelector{}
	listen("orderly", "ordered", selector, func(of context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		for _, each := range messages {
			if _, before := failed.LoadOrStore("orderly"+keyOf(each), true); keyOf(each) == "ordered-3" && !before {
				return consumer.SuspendCurrentQueueAMoment, nil
			}
		}
		return receives("orderly")(of, messages...)
	}, consumer.WithConsumerOrder(true))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func say(fields ...string) {
	lock.Lock()
	defer lock.Unlock()
	fmt.Println(strings.Join(fields, "\t"))
}
