// A client on github.com/apache/rocketmq-clients/golang that speaks gRPC with a proxy: sends, then consumes.
//
// Usage: client ENDPOINT TOPIC COUNT [KEYLOG]
//
// With KEYLOG it speaks TLS and writes the secrets of its sessions into that file.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

func main() {
	endpoint, topic := os.Args[1], os.Args[2]
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	rmq.EnableSsl = len(os.Args) > 4
	if rmq.EnableSsl {
		writeSecrets(os.Args[4])
	}
	produce(endpoint, topic, count)
	consume(endpoint, topic, count)
}

// writeSecrets gives each connection a configuration of TLS with a key log.
func writeSecrets(path string) {
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0600)
	check(err)
	config := &tls.Config{KeyLogWriter: log, InsecureSkipVerify: true}
	plain := rmq.NewRpcClient
	rmq.NewRpcClient = func(target string, options ...rmq.RpcClientOption) (rmq.RpcClient, error) {
		return plain(target, append(options, rmq.WithRpcClientConnOption(rmq.WithTLSConfig(config)))...)
	}
}

func configuration(endpoint string, group string) *rmq.Config {
	return &rmq.Config{Endpoint: endpoint, ConsumerGroup: group, Credentials: &credentials.SessionCredentials{}}
}

func produce(endpoint string, topic string, count int) {
	producer, err := rmq.NewProducer(configuration(endpoint, ""), rmq.WithTopics(topic))
	check(err)
	check(producer.Start())
	tell("ready")
	for i := 0; i < count; i++ {
		message := &rmq.Message{Topic: topic, Body: []byte(fmt.Sprintf("body %d", i))}
		message.SetTag("TagA")
		message.SetKeys(fmt.Sprintf("key-%d", i))
		message.AddProperty("colour", "green")
		receipts, err := producer.Send(context.Background(), message)
		check(err)
		for _, one := range receipts {
			tell("sent " + one.MessageID)
		}
	}
	check(producer.GracefulStop())
}

func consume(endpoint string, topic string, count int) {
	expressions := map[string]*rmq.FilterExpression{topic: rmq.SUB_ALL}
	consumer, err := rmq.NewSimpleConsumer(configuration(endpoint, "go-simple"),
		rmq.WithSimpleAwaitDuration(6*time.Second), rmq.WithSimpleSubscriptionExpressions(expressions))
	check(err)
	check(consumer.Start())
	tell("ready")
	for got, tries := 0, 0; got < count && tries < 30; tries++ {
		views, err := consumer.Receive(context.Background(), 8, 20*time.Second)
		var status *rmq.ErrRpcStatus
		if errors.As(err, &status) {
			continue // there was nothing
		}
		check(err)
		for _, view := range views {
			tell(fmt.Sprintf("consumed %s attempt %d", view.GetMessageId(), view.GetDeliveryAttempt()))
			check(consumer.Ack(context.Background(), view))
		}
		got += len(views)
	}
	check(consumer.GracefulStop())
}

func tell(line string) {
	fmt.Println(time.Now().UnixMilli(), line)
}

func check(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}
