import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;

/**
 * Reads one message per line: {"message": "LeaderAndIsrRequest", "version": 7, "content": {...}}, where content has every
 * field of that version under its name in Kafka's message definitions. Prints a line "body HEX" for each,
 * the bytes of Kafka's generated classes, without a builder, which would order topics by their hash.
 */
public final class Encode {
    private static final String PACKAGE = "org.apache.kafka.common.message.";

    private Encode() {
    }

    public static void main(String[] args) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode request = mapper.readTree(line);
            short version = (short) request.get("version").intValue();
            Message message = read(request.get("message").textValue(), request.get("content"), version);
            System.out.println("body " + hex(MessageUtil.toByteBuffer(message, version)));
        }
    }

    private static Message read(String name, JsonNode content, short version) throws Exception {
        Class<?> converter = Class.forName(PACKAGE + name + "DataJsonConverter");
        return (Message) converter.getMethod("read", JsonNode.class, short.class).invoke(null, content, version);
    }

    private static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
