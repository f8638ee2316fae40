package bench;

import java.util.Map;

/** Names of the codes that the generated captures use. */
final class Names {
    private static final Map<Integer, String> REQUESTS = Map.ofEntries(
            Map.entry(10, "SEND_MESSAGE"), Map.entry(11, "PULL_MESSAGE"),
            Map.entry(14, "QUERY_CONSUMER_OFFSET"), Map.entry(15, "UPDATE_CONSUMER_OFFSET"),
            Map.entry(34, "HEART_BEAT"), Map.entry(38, "GET_CONSUMER_LIST_BY_GROUP"),
            Map.entry(40, "NOTIFY_CONSUMER_IDS_CHANGED"),
            Map.entry(105, "GET_ROUTEINFO_BY_TOPIC"), Map.entry(106, "GET_BROKER_CLUSTER_INFO"),
            Map.entry(310, "SEND_MESSAGE_V2"), Map.entry(320, "SEND_BATCH_MESSAGE"));
    private static final Map<Integer, String> RESPONSES = Map.of(
            0, "SUCCESS", 2, "SYSTEM_BUSY", 10, "FLUSH_DISK_TIMEOUT", 17, "TOPIC_NOT_EXIST",
            19, "PULL_NOT_FOUND", 22, "QUERY_NOT_FOUND");
    private static final Map<Integer, String> VERSIONS = Map.of(
            317, "V4_5_2", 401, "V4_9_4", 441, "V5_1_4", 479, "V5_3_3");

    private Names() {}

    static String request(int code) {
        return name(REQUESTS, code);
    }

    static String response(int code) {
        return name(RESPONSES, code);
    }

    static String version(int ordinal) {
        return name(VERSIONS, ordinal);
    }

    private static String name(Map<Integer, String> table, int number) {
        String name = table.get(number);
        return name != null ? name : "UNKNOWN(" + number + ")";
    }
}
