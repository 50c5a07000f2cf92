// Apache's Go client with its defaults: sends each 200 ms and push-consumes until SIGTERM or the end of stdin.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

var lock sync.Mutex

func say(event map[string]any) {
	line, _ := json.Marshal(event)
	lock.Lock()
	defer lock.Unlock()
	fmt.Println(string(line))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func send(ctx context.Context, p rocketmq.Producer, topic, id string) {
	message := primitive.NewMessage(topic, []byte(id))
	message.WithKeys([]string{id})
	say(map[string]any{"f": "send", "id": id})
	result, err := p.SendSync(ctx, message)
	switch {
	case err != nil:
		say(map[string]any{"f": "sent", "id": id, "type": "fail", "error": err.Error()})
	default:
		queue := result.MessageQueue
		say(map[string]any{"f": "sent", "id": id, "type": "ok", "broker": queue.BrokerName, "queue": queue.QueueId})
	}
}

func received(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	for _, each := range messages {
		event := map[string]any{"f": "received", "id": string(each.Body)}
		if each.Queue != nil {
			event["broker"], event["queue"] = each.Queue.BrokerName, each.Queue.QueueId
		}
		say(event)
	}
	return consumer.ConsumeSuccess, nil
}

func main() {
	role, topic, group := os.Getenv("NEMESRV_ROLE"), os.Getenv("NEMESRV_TOPIC"), os.Getenv("NEMESRV_GROUP")
	var servers primitive.NamesrvAddr = strings.Split(os.Getenv("NAMESRV_ADDR"), ";")
	ofConsumer, ofProducer := consumer.WithNameServer(servers), producer.WithNameServer(servers)
	if url := os.Getenv("NEMESRV_NAMESRV_HTTP"); url != "" {
		ofConsumer, ofProducer = consumer.WithNameServerDomain(url), producer.WithNameServerDomain(url)
	}
	ctx, end := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	stop := []func() error{}
	if role == "consumer" || role == "both" {
		c, err := rocketmq.NewPushConsumer(ofConsumer, consumer.WithGroupName(group))
		must(err)
		must(c.Subscribe(topic, consumer.MessageSelector{}, received))
		must(c.Start())
		stop = append(stop, c.Shutdown)
	}
	sending := make(chan struct{})
	close(sending)
	var p rocketmq.Producer
	if role != "consumer" {
		var err error
		p, err = rocketmq.NewProducer(ofProducer, producer.WithGroupName(group))
		must(err)
		must(p.Start())
		stop = append(stop, p.Shutdown)
	}
	say(map[string]any{"f": "started"})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
	}()
	if p != nil {
		sending = make(chan struct{})
		go func() {
			defer close(sending)
			for n := 0; ctx.Err() == nil; n++ {
				send(ctx, p, topic, fmt.Sprintf("%d-%d", os.Getpid(), n))
				select {
				case <-ctx.Done():
				case <-time.After(200 * time.Millisecond):
				}
			}
		}()
	}
	<-ctx.Done()
	time.AfterFunc(1500*time.Millisecond, func() { os.Exit(0) }) // what hangs is left behind
	<-sending
	for _, each := range stop {
		_ = each()
	}
}
