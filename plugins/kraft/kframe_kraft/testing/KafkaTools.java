import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * Runs the main classes of Kafka's command line tools, one request a line: a JSON array of the class and its
 * arguments. The reply is a JSON object with the exit status and the output. One process serves many tools, because
 * most of a tool's time is the start of its JVM.
 */
public final class KafkaTools {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static final class ExitRequest extends RuntimeException {
        ExitRequest() {
            super(null, null, false, false);
        }
    }

    /** The reply of the running tool from its first exit on. Some tools catch the exception of an exit, and exit again. */
    private static Map<String, Object> reply;

    private static ByteArrayOutputStream output;
    private static ByteArrayOutputStream errors;

    private KafkaTools() {}

    public static void main(String[] arguments) throws Exception {
        PrintStream replies = System.out;
        catchExits();
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            reply = null;
            output = new ByteArrayOutputStream();
            errors = new ByteArrayOutputStream();
            System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
            run(JSON.readTree(line));
            replies.println(JSON.writeValueAsString(reply));
        }
    }

    private static void end(int status, String message) {
        if (reply == null) {
            if (message != null) {
                System.err.println(message);
            }
            reply = Map.of(
                "status", status,
                "output", output.toString(StandardCharsets.UTF_8),
                "errors", errors.toString(StandardCharsets.UTF_8));
        }
    }

    /** Let Kafka's Exit class throw. The class is in another package since 4.4. */
    private static void catchExits() throws ReflectiveOperationException {
        Class<?> exit;
        try {
            exit = Class.forName("org.apache.kafka.common.utils.internals.Exit");
        } catch (ClassNotFoundException older) {
            exit = Class.forName("org.apache.kafka.common.utils.Exit");
        }
        Class<?> procedure = Class.forName(exit.getName() + "$Procedure");
        Object throwing = Proxy.newProxyInstance(exit.getClassLoader(), new Class<?>[] {procedure}, (proxy, method, values) -> {
            end((Integer) values[0], (String) values[1]);
            throw new ExitRequest();
        });
        exit.getMethod("setExitProcedure", procedure).invoke(null, throwing);
        exit.getMethod("setHaltProcedure", procedure).invoke(null, throwing);
    }

    private static void run(JsonNode request) {
        String[] arguments = new String[request.size() - 1];
        for (int i = 0; i < arguments.length; i++) {
            arguments[i] = request.get(i + 1).asText();
        }
        try {
            Class.forName(request.get(0).asText()).getMethod("main", String[].class).invoke(null, (Object) arguments);
            end(0, null);
        } catch (InvocationTargetException error) {
            error.getCause().printStackTrace(System.err);
            end(1, null);
        } catch (ReflectiveOperationException error) {
            error.printStackTrace(System.err);
            end(1, null);
        }
    }
}
