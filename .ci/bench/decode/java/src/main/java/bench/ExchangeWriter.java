package bench;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.time.Instant;

/** Exchanges as one JSON object per line, with the columns of the project's own record. */
final class ExchangeWriter {
    private final JsonGenerator out;
    private final String capture;
    private long second = -1;
    private String secondText;

    ExchangeWriter(OutputStream stream, String capture) throws IOException {
        out = new JsonFactory().createGenerator(stream);
        out.setRootValueSeparator(null);
        this.capture = capture;
    }

    /** Either of the two may be null, not both. */
    void write(
            int conversation, String client, String server, Command request,
            Command response) {
        try {
            out.writeStartObject();
            out.writeStringField("capture", capture);
            out.writeNumberField("conversation", conversation);
            out.writeStringField("client_address", client);
            out.writeStringField("server_address", server);
            out.writeStringField("status", statusOf(request, response));
            writeBoth(request, response);
            if (request != null) {
                writeRequest(request);
            }
            if (response != null) {
                writeResponse(request, response);
            }
            out.writeEndObject();
            out.writeRaw('\n');
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static String statusOf(Command request, Command response) {
        if (request == null) {
            return "orphan";
        }
        if (response != null) {
            return "answered";
        }
        return request.isOneway() ? "oneway" : "unanswered";
    }

    /** What is taken from the request, or from the response where there is no request. */
    private void writeBoth(Command request, Command response) throws IOException {
        Command first = request != null ? request : response;
        out.writeNumberField("opaque", first.opaque);
        out.writeStringField("language", first.language);
        out.writeNumberField("version", first.version);
        out.writeStringField("version_name", Names.version(first.version));
        out.writeStringField("serialize_type", first.binary ? "ROCKETMQ" : "JSON");
        int body = request != null ? request.bodyLength : 0;
        out.writeNumberField(
                "body_bytes", body == 0 && response != null ? response.bodyLength : body);
        String remark = response != null ? response.remark : first.remark;
        text("remark", remark != null && !remark.isEmpty() ? remark : null);
    }

    private void writeRequest(Command request) throws IOException {
        out.writeNumberField("request_packet", request.packet);
        out.writeStringField("request_time", time(request.micros));
        out.writeNumberField("request_code", request.code);
        out.writeStringField("request_name", Names.request(request.code));
        out.writeNumberField("request_bytes", request.length() + 4);
        text("topic", request.topic());
        text("group", request.group());
        number("queue_id", request.queueId());
        text("broker_name", request.brokerName());
        text("unique_key", request.property("UNIQ_KEY"));
        text("keys", request.property("KEYS"));
        text("tags", request.property("TAGS"));
        if (request.isSend() || request.messages >= 0) {
            out.writeNumberField("message_count", request.isSend() ? 1 : request.messages);
        }
    }

    private void writeResponse(Command request, Command response) throws IOException {
        out.writeNumberField("response_packet", response.packet);
        out.writeStringField("response_time", time(response.micros));
        if (request != null) {
            out.writeNumberField("latency_us", response.micros - request.micros);
        }
        out.writeNumberField("response_code", response.code);
        out.writeStringField("response_name", Names.response(response.code));
        out.writeNumberField("response_bytes", response.length() + 4);
        number("queue_offset", response.fields.get("queueOffset"));
        text("offset_msg_id", response.fields.get("msgId"));
        if (response.messages >= 0) {
            out.writeNumberField("message_count", response.messages);
        }
    }

    /** ISO 8601 in UTC; the text of a second is made once. */
    private String time(long micros) {
        long whole = micros / 1_000_000;
        if (whole != second) {
            second = whole;
            String text = Instant.ofEpochSecond(whole).toString();
            secondText = text.substring(0, text.length() - 1) + ".";
        }
        String fraction = Long.toString(1_000_000 + micros % 1_000_000);
        return secondText + fraction.substring(1) + "Z";
    }

    private void text(String name, String value) throws IOException {
        if (value != null) {
            out.writeStringField(name, value);
        }
    }

    private void number(String name, String value) throws IOException {
        if (value != null) {
            out.writeNumberField(name, Long.parseLong(value));
        }
    }

    void finish() throws IOException {
        out.close();
    }
}
