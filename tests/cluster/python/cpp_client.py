"""A client on `rocketmq`, the Python binding of the C++ client: sends in each way, then consumes.

Usage: cpp_client.py PACKAGES NAMESRV TOPIC COUNT
"""

import sys
import threading
import time

sys.path.insert(0, sys.argv[1])  # the binding, which brings the C++ library

from rocketmq.client import Message, Producer, PushConsumer


def tell(line):
    # with one call: the client calls back on threads of its own
    sys.stdout.write(f"{time.time_ns() // 1_000_000} {line}\n")
    sys.stdout.flush()


def message(topic, number):
    made = Message(topic)
    made.set_keys(f"key-{number}")
    made.set_tags("TagA")
    made.set_property("colour", "green")
    made.set_body(f"body {number}")
    return made


def produce(namesrv, topic, count):
    producer = Producer("cpp_producers", timeout=20_000)
    producer.set_namesrv_addr(namesrv)
    producer.start()
    for number in range(count):
        result = producer.send_sync(message(topic, number))
        tell(f"{result.status.name} {result.msg_id}")
    for number in range(count):
        tell(f"ordered {producer.send_orderly(message(topic, number), number % 2).status.name}")
    tell(f"batch {producer.send_batch([message(topic, one) for one in range(count)]).status.name}")
    producer.send_oneway(message(topic, count))
    time.sleep(1)
    producer.shutdown()


def consume(namesrv, topic, wanted):
    got = []
    done = threading.Event()

    def take(received):
        got.append(received.id)
        tell(f"consumed {received.id} {received.body.decode()} {received.reconsume_times}")
        if len(got) >= wanted:
            done.set()

    consumer = PushConsumer("cpp_consumers")
    consumer.set_namesrv_addr(namesrv)
    consumer.subscribe(topic, take)
    consumer.start()
    if not done.wait(60):
        tell(f"only {len(got)} messages")
    time.sleep(1)
    consumer.shutdown()


def main():
    namesrv, topic, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
    produce(namesrv, topic, count)
    consume(namesrv, topic, 2 * count + 2)  # a broker takes the batch for one message


main()
