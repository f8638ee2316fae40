import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * Transactions: of four messages one is committed, one rolled back, one left unknown and committed at the first
 * check-back, one left unknown twice and rolled back at the second. With {@code undecided=true} all are left unknown
 * for ever; with {@code hang=true} the first local transaction never ends.
 */
public final class TransactionSend {
    private static final Map<String, Integer> CHECKS = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        Options options = new Options(args);
        TransactionMQProducer producer =
            options.configure(new TransactionMQProducer(options.group(), options.hook()));
        options.tune(producer);
        producer.setTransactionListener(new Listener(options.is("undecided"), options.is("hang")));
        producer.start();
        for (int i = 0; i < options.number("count", 4); i++) {
            Message message = options.message(i);
            System.out.println(producer.sendMessageInTransaction(message, i).getLocalTransactionState());
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
    }

    private static final class Listener implements TransactionListener {
        private final boolean undecided;
        private final boolean hang;

        Listener(boolean undecided, boolean hang) {
            this.undecided = undecided;
            this.hang = hang;
        }

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object number) {
            if (hang) {
                System.out.println("executing");
                LockSupport.parkNanos(Long.MAX_VALUE);
            }
            return switch (undecided ? 2 : (Integer) number % 4) {
                case 0 -> LocalTransactionState.COMMIT_MESSAGE;
                case 1 -> LocalTransactionState.ROLLBACK_MESSAGE;
                default -> LocalTransactionState.UNKNOW;
            };
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            int checks = CHECKS.merge(message.getKeys(), 1, Integer::sum);
            System.out.println("check " + message.getKeys() + " " + checks);
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
