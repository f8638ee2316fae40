import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.consumer.AckCallback;
import org.apache.rocketmq.client.consumer.AckResult;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PopCallback;
import org.apache.rocketmq.client.consumer.PopResult;
import org.apache.rocketmq.client.impl.MQClientAPIImpl;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.remoting.protocol.RemotingCommand;
import org.apache.rocketmq.remoting.protocol.RequestCode;
import org.apache.rocketmq.remoting.protocol.header.AckMessageRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.ChangeInvisibleTimeRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.ExtraInfoUtil;
import org.apache.rocketmq.remoting.protocol.header.NotificationRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.PollingInfoRequestHeader;
import org.apache.rocketmq.remoting.protocol.header.PopMessageRequestHeader;

/** The calls of POP one by one: pop, acknowledge, acknowledge many, another invisible time, notification, polling info. */
public final class PopCalls {
    private final Options options;
    private final String broker;
    private final String brokerName;
    private final MQClientAPIImpl api;

    private PopCalls(Options options, MQClientAPIImpl api) {
        this.options = options;
        this.broker = options.text("broker", "");
        this.brokerName = options.text("broker-name", "broker-a");
        this.api = api;
    }

    public static void main(String[] args) throws Exception {
        Options options = new Options(args);
        DefaultMQPullConsumer consumer = options.configure(new DefaultMQPullConsumer(options.group()));
        consumer.start();
        MQClientAPIImpl api = consumer.getDefaultMQPullConsumerImpl().getRebalanceImpl().getmQClientFactory()
            .getMQClientAPIImpl();
        try {
            new PopCalls(options, api).run();
        } finally {
            consumer.shutdown();
        }
    }

    private void run() throws Exception {
        if (options.is("late")) {
            late();
            return;
        }
        System.out.println("notified " + ask(RequestCode.NOTIFICATION, notification()).getCode());
        System.out.println("polling " + ask(RequestCode.POLLING_INFO, pollingInfo()).getCode());
        List<MessageExt> messages = new ArrayList<>(pop(4));
        System.out.println("popped " + messages.size());
        if (messages.size() < 4) {
            throw new IllegalStateException("wants four messages in the topic");
        }
        System.out.println("acknowledged " + acknowledge(messages.get(0)));
        System.out.println("acknowledged twice " + acknowledge(messages.get(0)));
        System.out.println("changed " + changeInvisible(messages.get(1)));
        List<String> receipts = new ArrayList<>();
        messages.subList(2, messages.size()).forEach(message -> receipts.add(receipt(message)));
        CompletableFuture<AckResult> many = new CompletableFuture<>();
        api.batchAckMessageAsync(broker, 3000, callback(many), options.topic(), options.group(), receipts);
        System.out.println("many " + many.get(10, TimeUnit.SECONDS).getStatus());
        System.out.println("again " + pop(32).size());
        System.out.println("none " + pop(32).size());
    }

    /** Acknowledges what it popped only after the invisible time, pops again, and what is not there at all. */
    private void late() throws Exception {
        List<MessageExt> messages = new ArrayList<>(pop(2));
        System.out.println("popped " + messages.size());
        Thread.sleep(options.number("invisible-ms", 10000) + options.number("late-ms", 3000));
        for (MessageExt message : messages) {
            System.out.println("acknowledged late " + acknowledge(message));
        }
        List<MessageExt> again = new ArrayList<>(pop(2));
        System.out.println("popped again " + again.size());
        for (MessageExt message : again) {
            System.out.println("acknowledged " + acknowledge(message));
        }
        AckMessageRequestHeader beyond = ackOf(messages.get(0));
        beyond.setOffset(1_000_000L);
        System.out.println("beyond " + ask(RequestCode.ACK_MESSAGE, beyond).getCode());
    }

    /** Pops from any queue until that many came, or nothing for the poll time. */
    private List<MessageExt> pop(int wanted) throws Exception {
        List<MessageExt> messages = new ArrayList<>();
        for (int round = 0; round < 6 && messages.size() < wanted; round++) {
            PopMessageRequestHeader header = new PopMessageRequestHeader();
            header.setConsumerGroup(options.group());
            header.setTopic(options.topic());
            header.setQueueId(-1);
            header.setMaxMsgNums(8);
            header.setInvisibleTime(options.number("invisible-ms", 10000));
            header.setPollTime(1000);
            header.setBornTime(System.currentTimeMillis());
            header.setInitMode(0);
            header.setExpType("TAG");
            header.setExp("*");
            header.setBrokerName(brokerName);
            CompletableFuture<PopResult> answer = new CompletableFuture<>();
            api.popMessageAsync(brokerName, broker, header, 12000, new PopCallback() {
                @Override
                public void onSuccess(PopResult result) {
                    answer.complete(result);
                }

                @Override
                public void onException(Throwable error) {
                    answer.completeExceptionally(error);
                }
            });
            PopResult result = answer.get(15, TimeUnit.SECONDS);
            System.out.println(result.getPopStatus());
            if (result.getMsgFoundList() == null || result.getMsgFoundList().isEmpty()) {
                break;
            }
            messages.addAll(result.getMsgFoundList());
        }
        return messages;
    }

    private Object acknowledge(MessageExt message) throws Exception {
        CompletableFuture<AckResult> answer = new CompletableFuture<>();
        api.ackMessageAsync(broker, 3000, callback(answer), ackOf(message));
        return answer.get(10, TimeUnit.SECONDS).getStatus();
    }

    private AckMessageRequestHeader ackOf(MessageExt message) {
        String[] parts = ExtraInfoUtil.split(receipt(message));
        AckMessageRequestHeader header = new AckMessageRequestHeader();
        header.setTopic(ExtraInfoUtil.getRealTopic(parts, options.topic(), options.group()));
        header.setQueueId(ExtraInfoUtil.getQueueId(parts));
        header.setOffset(ExtraInfoUtil.getQueueOffset(parts));
        header.setConsumerGroup(options.group());
        header.setExtraInfo(receipt(message));
        header.setBrokerName(brokerName);
        return header;
    }

    private Object changeInvisible(MessageExt message) throws Exception {
        String[] parts = ExtraInfoUtil.split(receipt(message));
        ChangeInvisibleTimeRequestHeader header = new ChangeInvisibleTimeRequestHeader();
        header.setTopic(ExtraInfoUtil.getRealTopic(parts, options.topic(), options.group()));
        header.setQueueId(ExtraInfoUtil.getQueueId(parts));
        header.setOffset(ExtraInfoUtil.getQueueOffset(parts));
        header.setConsumerGroup(options.group());
        header.setExtraInfo(receipt(message));
        header.setInvisibleTime(5000L);
        header.setBrokerName(brokerName);
        CompletableFuture<AckResult> answer = new CompletableFuture<>();
        api.changeInvisibleTimeAsync(brokerName, broker, header, 3000, callback(answer));
        return answer.get(10, TimeUnit.SECONDS).getStatus();
    }

    private RemotingCommand ask(int code, org.apache.rocketmq.remoting.CommandCustomHeader header) throws Exception {
        RemotingCommand request = RemotingCommand.createRequestCommand(code, header);
        return api.getRemotingClient().invokeSync(broker, request, 5000);
    }

    private NotificationRequestHeader notification() {
        NotificationRequestHeader header = new NotificationRequestHeader();
        header.setConsumerGroup(options.group());
        header.setTopic(options.topic());
        header.setQueueId(-1);
        header.setPollTime(1000);
        header.setBornTime(System.currentTimeMillis());
        return header;
    }

    private PollingInfoRequestHeader pollingInfo() {
        PollingInfoRequestHeader header = new PollingInfoRequestHeader();
        header.setConsumerGroup(options.group());
        header.setTopic(options.topic());
        header.setQueueId(-1);
        return header;
    }

    private static String receipt(MessageExt message) {
        return message.getProperty(MessageConst.PROPERTY_POP_CK);
    }

    private static AckCallback callback(CompletableFuture<AckResult> answer) {
        return new AckCallback() {
            @Override
            public void onSuccess(AckResult result) {
                answer.complete(result);
            }

            @Override
            public void onException(Throwable error) {
                answer.completeExceptionally(error);
            }
        };
    }
}
