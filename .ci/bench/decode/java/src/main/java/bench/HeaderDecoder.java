package bench;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/** Header bytes to Command: JSON by Jackson's streaming parser, and the binary form by hand. */
final class HeaderDecoder {
    private static final String[] LANGUAGES = {
        "JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO",
        "PHP", "OMS", "RUST", "NODE_JS",
    };

    private final JsonFactory factory = new JsonFactory();

    Command decode(byte[] data, int offset, int length, boolean binary) throws IOException {
        Command command = new Command();
        command.binary = binary;
        command.headerLength = length;
        if (binary) {
            readBinary(command, data, offset);
        } else {
            readJson(command, data, offset, length);
        }
        return command;
    }

    private void readJson(Command command, byte[] data, int offset, int length)
            throws IOException {
        try (JsonParser parser = factory.createParser(data, offset, length)) {
            parser.nextToken();
            String name;
            while ((name = parser.nextFieldName()) != null) {
                JsonToken token = parser.nextToken();
                switch (name) {
                    case "code" -> command.code = parser.getIntValue();
                    case "opaque" -> command.opaque = parser.getIntValue();
                    case "flag" -> command.flag = parser.getIntValue();
                    case "version" -> command.version = parser.getIntValue();
                    case "language" -> command.language = parser.getText();
                    case "remark" ->
                        command.remark = token == JsonToken.VALUE_NULL ? null : parser.getText();
                    case "extFields" -> readFields(command, parser);
                    default -> parser.skipChildren();
                }
            }
        }
    }

    private static void readFields(Command command, JsonParser parser) throws IOException {
        String name;
        while ((name = parser.nextFieldName()) != null) {
            parser.nextToken();
            command.fields.put(name, parser.getText());
        }
    }

    private static void readBinary(Command command, byte[] data, int offset) {
        command.code = Bytes.int16(data, offset) & 0xFFFF;
        int language = data[offset + 2];
        boolean known = language >= 0 && language < LANGUAGES.length;
        command.language = known ? LANGUAGES[language] : "UNKNOWN(" + language + ")";
        command.version = Bytes.int16(data, offset + 3);
        command.opaque = Bytes.int32(data, offset + 5);
        command.flag = Bytes.int32(data, offset + 9);
        int size = Bytes.int32(data, offset + 13);
        int at = offset + 17;
        command.remark = size == 0 ? null : text(data, at, size);
        at += size;
        int end = at + 4 + Bytes.int32(data, at);
        at += 4;
        while (at < end) {
            int length = Bytes.int16(data, at);
            String name = text(data, at + 2, length);
            at += 2 + length;
            length = Bytes.int32(data, at);
            command.fields.put(name, text(data, at + 4, length));
            at += 4 + length;
        }
    }

    private static String text(byte[] data, int offset, int length) {
        return new String(data, offset, length, StandardCharsets.UTF_8);
    }
}
