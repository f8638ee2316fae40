package bench;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;

/** Exchanges as one JSON object a line. */
final class ExchangeWriter {
    private final JsonGenerator out;

    ExchangeWriter(OutputStream stream) throws IOException {
        out = new JsonFactory().createGenerator(stream);
        out.setRootValueSeparator(null);
    }

    /** Either of the two may be null, not both. */
    void write(String requester, String responder, Command request, Command response) {
        try {
            out.writeStartObject();
            out.writeStringField("status", statusOf(request, response));
            out.writeStringField("requester", requester);
            out.writeStringField("responder", responder);
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

    static String statusOf(Command request, Command response) {
        if (request == null) {
            return "orphan";
        }
        if (response != null) {
            return "answered";
        }
        return request.isOneway() ? "oneway" : "unanswered";
    }

    private void writeRequest(Command request) throws IOException {
        out.writeNumberField("opaque", request.opaque);
        out.writeNumberField("code", request.code);
        out.writeNumberField("ts", request.micros);
        out.writeNumberField("packet", request.packet);
        out.writeStringField("language", request.language);
        out.writeNumberField("version", request.version);
        out.writeBooleanField("binary", request.binary);
        text("topic", request.topic());
        text("group", request.group());
        text("queueId", request.queueId());
        text("key", request.uniqueKey());
        out.writeNumberField("header_length", request.headerLength);
        out.writeNumberField("body_length", request.bodyLength);
    }

    private void writeResponse(Command request, Command response) throws IOException {
        if (request == null) {
            out.writeNumberField("opaque", response.opaque);
        } else {
            out.writeNumberField("latency_us", response.micros - request.micros);
        }
        out.writeNumberField("response_code", response.code);
        out.writeNumberField("response_packet", response.packet);
        out.writeNumberField("response_version", response.version);
        text("remark", response.remark);
        text("msg_id", response.fields.get("msgId"));
        text("queue_offset", response.fields.get("queueOffset"));
        out.writeNumberField("response_header_length", response.headerLength);
        out.writeNumberField("response_body_length", response.bodyLength);
    }

    private void text(String name, String value) throws IOException {
        if (value != null) {
            out.writeStringField(name, value);
        }
    }

    void finish() throws IOException {
        out.close();
    }
}
