import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** Authorizes by Kafka's own StandardAuthorizer; each input line has a reply line with 1 or 0 for each request. */
public final class AuthorizerOracle {
    private static final Metrics METRICS = new Metrics();
    private static long cases;

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] parts = line.split("\t", -1);
            String answer;
            try {
                answer = answer(parts[0], parts[1], parts[2], parts[3]);
            } catch (Exception error) {
                answer = "ERROR " + error.toString().replace('\n', ' ');
            }
            output.println(answer);
            output.flush();
        }
    }

    /** Settings, then ACLs and requests, which are separated by bars. */
    private static String answer(String superUsers, String everyone, String acls, String requests) throws Exception {
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.configure(Map.of("super.users", superUsers, "allow.everyone.if.no.acl.found", everyone));
        authorizer.withPluginMetrics(new PluginMetricsImpl(METRICS, Map.of("case", Long.toString(++cases))));
        long id = 0;
        for (String text : acls.isEmpty() ? new String[0] : acls.split("\\|")) {
            String[] acl = text.split(" ");
            authorizer.addAcl(new Uuid(1, ++id), new StandardAcl(
                ResourceType.fromCode(Byte.parseByte(acl[0])), acl[1], PatternType.fromCode(Byte.parseByte(acl[2])),
                acl[3], acl[4], AclOperation.fromCode(Byte.parseByte(acl[5])),
                AclPermissionType.fromCode(Byte.parseByte(acl[6]))));
        }
        authorizer.completeInitialLoad();
        StringBuilder answers = new StringBuilder();
        for (String text : requests.split("\\|")) {
            String[] request = text.split(" ");
            ResourceType type = ResourceType.fromCode(Byte.parseByte(request[3]));
            ResourcePattern resource = new ResourcePattern(type, request[4], PatternType.LITERAL);
            AclOperation operation = AclOperation.fromCode(Byte.parseByte(request[2]));
            Action action = new Action(operation, resource, 1, false, false);
            List<AuthorizationResult> results =
                authorizer.authorize(new Client(request[0], request[1]), List.of(action));
            answers.append(results.get(0) == AuthorizationResult.ALLOWED ? '1' : '0');
        }
        authorizer.close();
        return answers.toString();
    }

    private record Client(String name, String host) implements AuthorizableRequestContext {
        public String listenerName() {
            return "CONTROLLER";
        }

        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.SASL_PLAINTEXT;
        }

        public KafkaPrincipal principal() {
            String[] parts = name.split(":", 2);
            return new KafkaPrincipal(parts[0], parts[1]);
        }

        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (Exception error) {
                throw new IllegalArgumentException(error);
            }
        }

        public int requestType() {
            return 19;
        }

        public int requestVersion() {
            return 7;
        }

        public String clientId() {
            return "client";
        }

        public int correlationId() {
            return 1;
        }
    }
}
