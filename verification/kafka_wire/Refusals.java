import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;

/**
 * Encodes Kafka's error response to a request, and counts the error codes that its client reads from a response. Each
 * input line is {"key": API key, "version": number, "code": error code, "request": body, "response": body}, with the bodies
 * in base64. The reply is a line {"refusal": body, "counts": {code: count}} or {"error": text}.
 */
public final class Refusals {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Refusals() {
    }

    public static void main(String[] args) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            Map<String, Object> reply = new LinkedHashMap<>();
            try {
                refuse(JSON.readTree(line), reply);
            } catch (Exception | StackOverflowError error) {
                reply.put("error", error.toString());
            }
            System.out.println(JSON.writeValueAsString(reply));
        }
    }

    private static void refuse(JsonNode fields, Map<String, Object> reply) {
        ApiKeys key = ApiKeys.forId(fields.get("key").asInt());
        short version = (short) fields.get("version").asInt();
        AbstractRequest request = AbstractRequest.parseRequest(key, version, bytes(fields.get("request"))).request;
        Exception error = Errors.forCode((short) fields.get("code").asInt()).exception("refused");
        ByteBuffer body = MessageUtil.toByteBuffer(request.getErrorResponse(0, error).data(), version);
        byte[] data = new byte[body.remaining()];
        body.get(data);
        reply.put("refusal", Base64.getEncoder().encodeToString(data));
        AbstractResponse response = AbstractResponse.parseResponse(key, bytes(fields.get("response")), version);
        Map<String, Integer> counts = new LinkedHashMap<>();
        response.errorCounts().forEach((code, count) -> counts.put(String.valueOf(code.code()), count));
        reply.put("counts", counts);
    }

    private static ByteBuffer bytes(JsonNode text) {
        return ByteBuffer.wrap(Base64.getDecoder().decode(text.asText()));
    }
}
