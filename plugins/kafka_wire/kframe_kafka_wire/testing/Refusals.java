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
 * What Kafka makes of a request that is refused, and what its client reads in a response. Each line of input is {"key":
 * API key, "version": number, "code": error code, "request": body, "response": body}, bodies in base64. It is answered by
 * one line {"refusal": body, "counts": {code: how often the client finds it}} or {"error": text}.
 */
public final class Refusals {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Refusals() {
    }

    public static void main(String[] args) throws Exception {
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            Map<String, Object> answer = new LinkedHashMap<>();
            try {
                judge(JSON.readTree(line), answer);
            } catch (Exception | StackOverflowError error) {
                answer.put("error", error.toString());
            }
            System.out.println(JSON.writeValueAsString(answer));
        }
    }

    private static void judge(JsonNode what, Map<String, Object> answer) {
        ApiKeys key = ApiKeys.forId(what.get("key").asInt());
        short version = (short) what.get("version").asInt();
        AbstractRequest request = AbstractRequest.parseRequest(key, version, bytes(what.get("request"))).request;
        Exception refused = Errors.forCode((short) what.get("code").asInt()).exception("refused");
        ByteBuffer body = MessageUtil.toByteBuffer(request.getErrorResponse(0, refused).data(), version);
        byte[] data = new byte[body.remaining()];
        body.get(data);
        answer.put("refusal", Base64.getEncoder().encodeToString(data));
        AbstractResponse response = AbstractResponse.parseResponse(key, bytes(what.get("response")), version);
        Map<String, Integer> counts = new LinkedHashMap<>();
        response.errorCounts().forEach((error, count) -> counts.put(String.valueOf(error.code()), count));
        answer.put("counts", counts);
    }

    private static ByteBuffer bytes(JsonNode text) {
        return ByteBuffer.wrap(Base64.getDecoder().decode(text.asText()));
    }
}
