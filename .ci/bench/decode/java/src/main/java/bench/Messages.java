package bench;

/** How many messages a body holds: stored ones in a response, those of a batch in a request. */
final class Messages {
    private static final int STORED = 0xDAA320A7;
    private static final int STORED_LONG_TOPIC = 0xDAA320AB;

    private Messages() {}

    static boolean mayBeIn(Command command) {
        return command.isResponse() ? command.bodyLength > 90 : command.code == 320;
    }

    /** The number of records, or -1 where the body is not made of them. */
    static int count(byte[] body, int length) {
        int records = 0;
        int at = 0;
        while (at + 8 <= length) {
            int size = Bytes.int32(body, at);
            int magic = Bytes.int32(body, at + 4);
            boolean known = magic == STORED || magic == STORED_LONG_TOPIC || magic == 0;
            if (!known || size < 22 || size > length - at) {
                return -1;
            }
            records++;
            at += size;
        }
        return at == length ? records : -1;
    }
}
