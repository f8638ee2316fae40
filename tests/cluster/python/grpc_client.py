"""A client on rocketmq-python-client that speaks gRPC with a proxy: sends, then consumes.

Usage: grpc_client.py PACKAGES ENDPOINT TOPIC COUNT [push]

With "push" it sends nothing and starts a push consumer.
"""

import sys
import time

sys.path.insert(0, sys.argv[1])  # the client and what it needs, of no environment

from rocketmq.v5.client import ClientConfiguration, Credentials
from rocketmq.v5.consumer import ConsumeResult, MessageListener, PushConsumer, SimpleConsumer
from rocketmq.v5.model import FilterExpression, Message
from rocketmq.v5.producer import Producer


def tell(line):
    print(time.time_ns() // 1_000_000, line, flush=True)


def produce(configuration, topic, count):
    producer = Producer(configuration, (topic,))
    producer.startup()
    tell("ready")
    for number in range(count):
        message = Message()
        message.topic = topic
        message.body = f"body {number}".encode()
        message.tag = "TagA"
        message.keys = f"key-{number}"
        message.add_property("colour", "green")
        tell(f"sent {producer.send(message).message_id}")
    producer.shutdown()


def consume(configuration, topic, count):
    consumer = SimpleConsumer(
        configuration, "python-simple", {topic: FilterExpression()}, await_duration=2
    )
    consumer.startup()
    time.sleep(2)  # it does not wait until the proxy knows its settings
    tell("ready")
    got = 0
    for _ in range(30):
        if got >= count:
            break
        for message in consumer.receive(8, 20) or ():
            tell(f"consumed {message.message_id} attempt {message.delivery_attempt}")
            consumer.ack(message)
            got += 1
    consumer.shutdown()


class Listener(MessageListener):
    def consume(self, message):
        tell(f"consumed {message.message_id} attempt {message.delivery_attempt}")
        return ConsumeResult.SUCCESS


def push(configuration, topic):
    consumer = PushConsumer(configuration, "python-push", Listener(), {topic: FilterExpression()})
    tell("starts")
    consumer.startup()
    tell("ready")
    sys.stdin.read()
    consumer.shutdown()


def main():
    endpoint, topic, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
    configuration = ClientConfiguration(endpoint, Credentials(), request_timeout=10)
    if sys.argv[5:] == ["push"]:
        push(configuration, topic)
        return
    produce(configuration, topic, count)
    consume(configuration, topic, count)


main()
