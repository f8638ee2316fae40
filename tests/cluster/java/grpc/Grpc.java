import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientConfigurationBuilder;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.StaticSessionCredentialsProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.FilterExpressionType;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.ProducerBuilder;
import org.apache.rocketmq.client.apis.producer.SendReceipt;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/** One client of 5.x that speaks gRPC with a proxy; {@code kind} says which, each result is one line. */
public final class Grpc {
    private static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();
    private final Map<String, String> values = new HashMap<>();

    private Grpc(String[] args) {
        for (String arg : args) {
            int at = arg.indexOf('=');
            values.put(arg.substring(0, at), arg.substring(at + 1));
        }
    }

    public static void main(String[] args) throws Exception {
        Grpc client = new Grpc(args);
        String kind = client.text("kind", "normal");
        try {
            if (kind.equals("push")) {
                client.push();
            } else if (kind.equals("simple")) {
                client.simple();
            } else {
                client.send(kind);
            }
        } catch (Exception error) {
            print("failed " + error.getClass().getSimpleName() + " " + error.getMessage());
            if (!client.is("may-fail")) {
                throw error;
            }
        }
        Host.end(0);
    }

    private void send(String kind) throws Exception {
        ProducerBuilder builder = PROVIDER.newProducerBuilder()
            .setClientConfiguration(configuration()).setTopics(topic())
            .setMaxAttempts(number("attempts", 3));
        if (kind.equals("transaction")) {
            builder.setTransactionChecker(view -> {
                print("check " + view.getMessageId());
                return TransactionResolution.COMMIT;
            });
        }
        try (Producer producer = builder.build()) {
            print("ready");
            if (kind.equals("burst")) {
                burst(producer);
                return;
            }
            for (int i = 0; i < number("count", 3); i++) {
                try {
                    sendOne(producer, kind, i);
                } catch (Exception error) {
                    if (!is("may-fail")) {
                        throw error;
                    }
                    print("failed " + error.getClass().getSimpleName() + " " + error.getMessage());
                }
                Thread.sleep(number("pause-ms", 50));
            }
            Thread.sleep(number("linger-ms", 0));
        }
    }

    private void sendOne(Producer producer, String kind, int i) throws Exception {
        byte[] body = ("body " + i + " " + "x".repeat(number("size", 0))).getBytes(StandardCharsets.UTF_8);
        MessageBuilder builder = PROVIDER.newMessageBuilder()
            .setTopic(topic()).setTag("TagA").setKeys("key-" + i)
            .addProperty("colour", "green").setBody(body);
        if (kind.equals("fifo")) {
            builder.setMessageGroup("order-" + i % 2);
        }
        if (kind.equals("delay")) {
            builder.setDeliveryTimestamp(System.currentTimeMillis() + number("delay-ms", 2000));
        }
        Message message = builder.build();
        if (!kind.equals("transaction")) {
            told(producer.send(message));
            return;
        }
        Transaction transaction = producer.beginTransaction();
        told(producer.send(message, transaction));
        if (i % 3 == 0) {
            transaction.commit();
        } else if (i % 3 == 1) {
            transaction.rollback();
        }
    }

    /** Sends all at once, and waits for their outcomes. */
    private void burst(Producer producer) {
        List<CompletableFuture<Void>> sends = new ArrayList<>();
        for (int i = 0; i < number("count", 3); i++) {
            Message message = PROVIDER.newMessageBuilder().setTopic(topic()).setKeys("key-" + i)
                .setBody(("body " + i).getBytes(StandardCharsets.UTF_8)).build();
            sends.add(producer.sendAsync(message).handle((receipt, error) -> {
                print(error == null ? "sent " + receipt.getMessageId() : "failed " + error.getMessage());
                return null;
            }));
        }
        sends.forEach(CompletableFuture::join);
    }

    private void told(SendReceipt receipt) {
        print("sent " + receipt.getMessageId());
    }

    private void push() throws Exception {
        try (PushConsumer consumer = PROVIDER.newPushConsumerBuilder()
            .setClientConfiguration(configuration()).setConsumerGroup(text("group", "sample_group"))
            .setSubscriptionExpressions(
                Collections.singletonMap(topic(), expression()))
            .setConsumptionThreadCount(2).setMaxCacheMessageCount(number("cache", 1024))
            .setMessageListener(view -> {
                print("consumed " + view.getMessageId() + " attempt " + view.getDeliveryAttempt());
                pause(number("work-ms", 0));
                boolean refused = is("refuse-all") || is("refuse-first") && view.getDeliveryAttempt() < 2;
                return refused ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
            }).build()) {
            print("ready");
            untilInputEnds();
        }
    }

    private void simple() throws Exception {
        try (SimpleConsumer consumer = PROVIDER.newSimpleConsumerBuilder()
            .setClientConfiguration(configuration()).setConsumerGroup(text("group", "sample_group"))
            .setAwaitDuration(Duration.ofMillis(number("await-ms", 3000)))
            .setSubscriptionExpressions(Collections.singletonMap(topic(), new FilterExpression("TagA")))
            .build()) {
            print("ready");
            for (int i = 0; i < number("count", 3); i++) {
                List<MessageView> views = consumer.receive(number("batch", 4),
                    Duration.ofMillis(number("invisible-ms", 15000)));
                Thread.sleep(views.isEmpty() ? 0 : number("work-ms", 0));
                int at = 0;
                for (MessageView view : views) {
                    print("consumed " + view.getMessageId() + " attempt " + view.getDeliveryAttempt());
                    if (view.getKeys().contains(text("forget-key", ""))) {
                        continue;
                    }
                    if (at++ == 1) {
                        consumer.changeInvisibleDuration(view, Duration.ofSeconds(10));
                    } else {
                        acknowledge(consumer, view);
                    }
                }
            }
        }
    }

    private void acknowledge(SimpleConsumer consumer, MessageView view) throws Exception {
        try {
            consumer.ack(view);
        } catch (Exception error) {
            if (!is("may-fail")) {
                throw error;
            }
            print("failed " + error.getClass().getSimpleName() + " " + error.getMessage());
        }
    }

    private FilterExpression expression() {
        return values.containsKey("sql")
            ? new FilterExpression(text("sql", ""), FilterExpressionType.SQL92)
            : new FilterExpression(text("expression", "*"));
    }

    private static void pause(int milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static void untilInputEnds() throws Exception {
        while (System.in.read() >= 0) {
            // whoever started this says when it is enough
        }
    }

    private ClientConfiguration configuration() {
        ClientConfigurationBuilder builder = ClientConfiguration.newBuilder()
            .setEndpoints(text("namesrv", "127.0.0.1:8081")).enableSsl(is("tls"))
            .setRequestTimeout(Duration.ofMillis(number("timeout-ms", 10000)));
        if (values.containsKey("secret")) {
            builder.setCredentialProvider(
                new StaticSessionCredentialsProvider(text("access", ""), text("secret", "")));
        }
        return builder.build();
    }

    private static synchronized void print(String line) {
        System.out.println(System.currentTimeMillis() + " " + line);
        System.out.flush();
    }

    private String topic() {
        return text("topic", "SampleTopic");
    }

    private String text(String key, String otherwise) {
        return values.getOrDefault(key, otherwise);
    }

    private int number(String key, int otherwise) {
        return values.containsKey(key) ? Integer.parseInt(values.get(key)) : otherwise;
    }

    private boolean is(String key) {
        return Boolean.parseBoolean(values.get(key));
    }
}
