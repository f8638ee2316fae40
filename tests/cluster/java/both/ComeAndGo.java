import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;

/** Consumers of one group that join it and leave it, one after the other, as instances that crash and are restarted. */
public final class ComeAndGo {
    public static void main(String[] args) throws Exception {
        Options options = new Options(args);
        String instance = options.text("instance", "sample");
        for (int i = 0; i < options.number("count", 8); i++) {
            DefaultMQPushConsumer consumer = options.configure(new DefaultMQPushConsumer(options.group()));
            consumer.setInstanceName(instance + "-" + i);
            consumer.setConsumeThreadMin(1);
            consumer.setConsumeThreadMax(1);
            consumer.subscribe(options.topic(), "*");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) ->
                ConsumeConcurrentlyStatus.CONSUME_SUCCESS);
            consumer.start();
            System.out.println("started " + i);
            Thread.sleep(options.number("stay-ms", 1000));
            consumer.shutdown();
            Thread.sleep(options.number("pause-ms", 300));
        }
        System.exit(0);
    }

    private ComeAndGo() { }
}
