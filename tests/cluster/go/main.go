// A client on github.com/apache/rocketmq-client-go: sends in every way that it knows, then consumes what it sent.
//
// Usage: client NAMESRV TOPIC COUNT
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
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
	namesrv, topic := []string{os.Args[1]}, os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	sent := send(namesrv, topic, count)
	consume(namesrv, topic, sent)
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
		result, err := p.SendSync(ctx, message(topic, i, 0))
		check(err)
		fmt.Println(result.Status, result.OffsetMsgID)
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

func consume(namesrv []string, topic string, wanted int) {
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
		seen.Add(int64(len(messages)))
		return consumer.ConsumeSuccess, nil
	}))
	check(c.Start())
	for end := time.Now().Add(30 * time.Second); seen.Load() < int64(wanted) && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(time.Second)
	check(c.Shutdown())
	fmt.Println("consumed", seen.Load(), "of", wanted)
	if seen.Load() < int64(wanted) {
		os.Exit(3)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
