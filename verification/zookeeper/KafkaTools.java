import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Runs the main classes of Kafka's command-line tools, one request a line: {"class": name, "arguments": [...], "input":
 * standard input}. The reply is a line {"status": exit status, "output": text, "errors": text}. One process serves many
 * tools, because most of a tool's time is the start of its JVM.
 */
public final class KafkaTools {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Ends a tool in place of its JVM. It is not an Exception, because tools catch those. */
    private static final class ExitRequest extends Error {
        private ExitRequest() {
            super(null, null, false, false);
        }
    }

    /** Both streams exist as long as the JVM, because some tools read System.out only once. */
    private static final ByteArrayOutputStream OUTPUT = new ByteArrayOutputStream();
    private static final ByteArrayOutputStream ERRORS = new ByteArrayOutputStream();

    /** The reply of the running tool from its first exit on. Some tools catch everything, and exit again. */
    private static Map<String, Object> reply;

    private KafkaTools() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream replies = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(new PrintStream(OUTPUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERRORS, true, StandardCharsets.UTF_8));
        replaceExits();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            reply = null;
            OUTPUT.reset();
            ERRORS.reset();
            run(JSON.readTree(line));
            replies.println(JSON.writeValueAsString(reply));
        }
        System.exit(0);
    }

    private static void end(int status) {
        if (reply == null) {
            reply = Map.of(
                "status", status,
                "output", OUTPUT.toString(StandardCharsets.UTF_8),
                "errors", ERRORS.toString(StandardCharsets.UTF_8));
        }
    }

    /** Let Kafka's Exit class throw, and ignore shutdown hooks. The class is in another package since 4.4. */
    private static void replaceExits() throws ReflectiveOperationException {
        Class<?> exit;
        try {
            exit = Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException older) {
            exit = Class.forName("org.apache.kafka.common.utils.Exit");
        }
        InvocationHandler throwing = (proxy, method, values) -> {
            end((Integer) values[0]);
            throw new ExitRequest();
        };
        replace(exit, "setExitProcedure", "Procedure", throwing);
        replace(exit, "setHaltProcedure", "Procedure", throwing);
        replace(exit, "setShutdownHookAdder", "ShutdownHookAdder", (proxy, method, values) -> null);
    }

    private static void replace(Class<?> exit, String setter, String type, InvocationHandler handler)
            throws ReflectiveOperationException {
        Class<?> procedure = Class.forName(exit.getName() + "$" + type);
        Object replacement = Proxy.newProxyInstance(exit.getClassLoader(), new Class<?>[] {procedure}, handler);
        exit.getMethod(setter, procedure).invoke(null, replacement);
    }

    private static void run(JsonNode request) {
        String[] arguments = JSON.convertValue(request.get("arguments"), String[].class);
        System.setIn(new ByteArrayInputStream(request.get("input").asText().getBytes(StandardCharsets.UTF_8)));
        try {
            Class<?> tool = Class.forName(request.get("class").asText());
            tool.getMethod("main", String[].class).invoke(null, (Object) arguments);
            end(0);
        } catch (InvocationTargetException error) {
            if (!(error.getCause() instanceof ExitRequest)) {
                error.getCause().printStackTrace();
            }
            end(1); // Does nothing after an exit.
        } catch (ReflectiveOperationException error) {
            error.printStackTrace();
            end(1);
        }
    }
}
