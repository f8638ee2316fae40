import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Transactions: of four messages one is committed, one rolled back, one left unknown and committed at the first
 * check-back, one left unknown twice and rolled back at the second. With {@code undecided=true} all are left unknown
 * for ever; with {@code hang=true} the first local transaction never ends. With {@code unknown-rolls-back=true} each
 * check-back is answered with a rollback, as by a program that does not find the transaction.
 */
public final class TransactionSend {
    private static final Map<String, Integer> CHECKS = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        CHECKS.clear();
        Options options = new Options(args);
        TransactionMQProducer producer =
            options.configure(new TransactionMQProducer(options.group(), options.hook()));
        options.tune(producer);
        Told told = new Told(options, producer.buildMQClientId());
        producer.setTransactionListener(new Listener(options, told));
        producer.start();
        for (int i = 0; i < options.number("count", 4); i++) {
            Message message = options.message(i);
            long begin = System.currentTimeMillis();
            TransactionSendResult result = producer.sendMessageInTransaction(message, i);
            told.sent(begin, message, result, null);
            System.out.println(result.getLocalTransactionState());
        }
        long end = System.currentTimeMillis() + options.number("wait-ms", 30000);
        while (CHECKS.values().stream().mapToInt(Integer::intValue).sum() < options.number("checks", 3)) {
            if (System.currentTimeMillis() > end) {
                throw new IllegalStateException("checked back only " + CHECKS);
            }
            Thread.sleep(50);
        }
        Thread.sleep(options.number("linger-ms", 500));
        producer.shutdown();
        Host.end(0);
    }

    private static final class Listener implements TransactionListener {
        private final Options options;
        private final boolean undecided;
        private final Told told;

        Listener(Options options, Told told) {
            this.options = options;
            this.undecided = options.is("undecided");
            this.told = told;
        }

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object number) {
            if (options.is("hang")) {
                System.out.println("executing");
                LockSupport.parkNanos(Long.MAX_VALUE);
            }
            LockSupport.parkNanos(options.number("work-ms", 0) * 1_000_000L);
            LocalTransactionState state = switch (undecided ? 2 : (Integer) number % 4) {
                case 0 -> LocalTransactionState.COMMIT_MESSAGE;
                case 1 -> LocalTransactionState.ROLLBACK_MESSAGE;
                default -> LocalTransactionState.UNKNOW;
            };
            told.say("decided", "msgId", message.getTransactionId(), "outcome", state);
            return state;
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            LocalTransactionState state = stateOf(message);
            told.about("checked", List.of(message), "outcome", state);
            return state;
        }

        private LocalTransactionState stateOf(MessageExt message) {
            int checks = CHECKS.merge(message.getKeys(), 1, Integer::sum);
            System.out.println("check " + message.getKeys() + " " + checks);
            if (options.is("unknown-rolls-back")) {
                return LocalTransactionState.ROLLBACK_MESSAGE;
            }
            if (undecided) {
                return LocalTransactionState.UNKNOW;
            }
            if (message.getKeys().equals("key-2")) {
                return LocalTransactionState.COMMIT_MESSAGE;
            }
            return checks < 2 ? LocalTransactionState.UNKNOW : LocalTransactionState.ROLLBACK_MESSAGE;
        }
    }

    private TransactionSend() { }
}
