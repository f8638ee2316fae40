// A client on github.com/apache/rocketmq-client-go: sends in every way that it knows, then consumes what it sent.
//
// Usage: client NAMESRV TOPIC COUNT [told [SECONDS]]
//
// With "told" it prints what it knows of each message as the Java clients do (java/both/Told.java), and gives the
// messages with even keys back once. It stays for SECONDS (1 if not given) once it has consumed everything.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
	"github.com/apache/rocketmq-client-go/v2/rlog"
)

func main() {
	rlog.SetLogLevel("error")
	told = len(os.Args) > 4
	namesrv, topic := []string{os.Args[1]}, os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	stay := 1
	if len(os.Args) > 5 {
		stay, err = strconv.Atoi(os.Args[5])
		check(err)
	}
	sent := send(namesrv, topic, count)
	consume(namesrv, topic, sent, time.Duration(stay)*time.Second)
}

func send(namesrv []string, topic string, count int) int {
	p, err := rocketmq.NewProducer(
		producer.WithNameServer(namesrv),
		producer.WithGroupName("go_group"),
		producer.WithInstanceName("go-producer"),
		producer.WithCompressMsgBodyOverHowmuch(2048),
	)
	check(err)
	check(p.Start())
	ctx := context.Background()
	for i := 0; i < count; i++ {
		begin := time.Now().UnixMilli()
		result, err := p.SendSync(ctx, message(topic, i, 0))
		check(err)
		tell("send", "go-producer", "go_group", fields{
			"begin": begin, "msgId": result.MsgID, "topic": topic, "status": "SEND_OK",
			"offsetMsgId": result.OffsetMsgID, "broker": result.MessageQueue.BrokerName,
			"queue": result.MessageQueue.QueueId, "offset": result.QueueOffset,
		})
		fmt.Println(result.Status, result.OffsetMsgID)
	}
	if told {
		check(p.Shutdown())
		return count
	}
	check(p.SendOneWay(ctx, message(topic, count, 0)))
	_, err = p.SendSync(ctx, message(topic, count+1, 0), message(topic, count+2, 0))
	check(err)
	_, err = p.SendSync(ctx, message(topic, count+3, 4000))
	check(err)
	var done sync.WaitGroup
	done.Add(1)
	check(p.SendAsync(ctx, func(_ context.Context, result *primitive.SendResult, err error) {
		check(err)
		done.Done()
	}, message(topic, count+4, 0)))
	done.Wait()
	check(p.Shutdown())
	return count + 5
}

func message(topic string, i int, size int) *primitive.Message {
	body := fmt.Sprintf("message %d äæ", i)
	for len(body) < size {
		body += " and again"
	}
	m := primitive.NewMessage(topic, []byte(body))
	return m.WithTag("TagA").WithKeys([]string{fmt.Sprintf("key-%d", i)})
}

func consume(namesrv []string, topic string, wanted int, stay time.Duration) {
	c, err := rocketmq.NewPushConsumer(
		consumer.WithNameServer(namesrv),
		consumer.WithGroupName("go_consumer_group"),
		consumer.WithInstance("go-consumer"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	)
	check(err)
	var seen atomic.Int64
	check(c.Subscribe(topic, consumer.MessageSelector{}, func(
		_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		// This client has no hook between the answer and the listener.
		about("received", messages, "")
		about("given", messages, "")
		if told && messages[0].ReconsumeTimes == 0 && isEven(messages[0].GetKeys()) {
			about("done", messages, "RECONSUME_LATER")
			return consumer.ConsumeRetryLater, nil
		}
		about("done", messages, "CONSUME_SUCCESS")
		seen.Add(int64(len(messages)))
		return consumer.ConsumeSuccess, nil
	}))
	check(c.Start())
	tell("started", "go-consumer", "go_consumer_group", nil)
	for end := time.Now().Add(90 * time.Second); seen.Load() < int64(wanted) && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(stay)
	tell("stopping", "go-consumer", "go_consumer_group", nil)
	check(c.Shutdown())
	tell("stopped", "go-consumer", "go_consumer_group", nil)
	fmt.Println("consumed", seen.Load(), "of", wanted)
	if seen.Load() < int64(wanted) {
		os.Exit(3)
	}
}

type fields map[string]any

var told bool

// tell prints one line of JSON; "kind" is its first member.
func tell(kind string, instance string, group string, more fields) {
	if !told {
		return
	}
	line := fmt.Sprintf(`{"kind":"%s","at":%d,"client":"%s@%s","group":"%s"`,
		kind, time.Now().UnixMilli(), address(), instance, group)
	if len(more) > 0 {
		text, err := json.Marshal(more)
		check(err)
		line += "," + string(text[1:len(text)-1])
	}
	fmt.Println(line + "}")
}

func about(kind string, messages []*primitive.MessageExt, outcome string) {
	for _, m := range messages {
		more := fields{
			"msgId": m.MsgId, "offsetMsgId": m.OffsetMsgId, "topic": m.Topic, "queue": m.Queue.QueueId,
			"offset": m.QueueOffset, "reconsumed": m.ReconsumeTimes,
		}
		if outcome != "" {
			more["outcome"] = outcome
		}
		tell(kind, "go-consumer", "go_consumer_group", more)
	}
}

func isEven(keys string) bool {
	number, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(keys), "key-"))
	return err == nil && number%2 == 0
}

// address is the one that the client names itself by: the first that is not loopback.
func address() string {
	all, err := net.InterfaceAddrs()
	check(err)
	for _, one := range all {
		if ip, ok := one.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	return "127.0.0.1"
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
