import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;

/**
 * Kafka's command-line tools, one after another in one JVM. Each line of input is {"class": name, "arguments": [...],
 * "input": text}, answered by one line {"code": exit code, "output": what went to both outputs}.
 */
public final class ToolBox {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Where both outputs go now. Some tools ask only once what System.out is. */
    private static final class Said extends OutputStream {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int one) {
            bytes.write(one);
        }

        @Override
        public synchronized void write(byte[] some, int offset, int length) {
            bytes.write(some, offset, length);
        }

        private synchronized String take() {
            String said = bytes.toString(StandardCharsets.UTF_8);
            bytes.reset();
            return said;
        }
    }

    /** Thrown where a tool would end its JVM; no Exception, so that it passes by what tools catch. */
    private static final class Ended extends Error {
        private final int code;

        private Ended(int code) {
            super("exit " + code, null, false, false);
            this.code = code;
        }
    }

    private ToolBox() {
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader asked = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Said said = new Said();
        PrintStream both = new PrintStream(said, true, StandardCharsets.UTF_8);
        System.setOut(both);
        System.setErr(both);
        Exit.setShutdownHookAdder((name, hook) -> { });
        for (String line = asked.readLine(); line != null; line = asked.readLine()) {
            int code = run(JSON.readTree(line));
            both.flush();
            answers.println(JSON.writeValueAsString(Map.of("code", code, "output", said.take())));
        }
        System.exit(0);
    }

    private static int run(JsonNode what) throws Exception {
        List<String> arguments = new ArrayList<>();
        what.get("arguments").forEach(one -> arguments.add(one.asText()));
        System.setIn(new ByteArrayInputStream(what.get("input").asText().getBytes(StandardCharsets.UTF_8)));
        int[] first = {-1};
        Exit.Procedure end = (code, message) -> {
            if (first[0] < 0) {
                first[0] = code;
            }
            throw new Ended(code);
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        try {
            Class.forName(what.get("class").asText()).getMethod("main", String[].class)
                .invoke(null, (Object) arguments.toArray(new String[0]));
        } catch (InvocationTargetException thrown) {
            if (!(thrown.getCause() instanceof Ended)) { // as a JVM that ends by it
                thrown.getCause().printStackTrace();
                return 1;
            }
        }
        return Math.max(first[0], 0);
    }
}
