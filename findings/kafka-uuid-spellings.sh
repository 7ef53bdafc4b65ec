#!/usr/bin/env bash
# Kafka 4.4.0 (kafka-clients): sixteen texts of 22 characters name the same id.
#
# Uuid.fromString decodes 22 base64 characters, 132 bits, to 128 bits. It ignores the last four bits whatever they are,
# and it also takes the padding "==". Every id thus has 16 last characters, of which Uuid.toString prints one. Programs
# that compare ids as text, for example of two JSON files, see different topics where Kafka sees one.
#
# Seen: for 6xM53_QBQaqbwEQAMlJIVg, the last characters "ghijklmnopqrstuv" all give the same Uuid.
source "$(dirname "$0")/common/setup.sh"
maven_packages org.apache.kafka:kafka-clients:4.4.0
cat >"$folder/Spellings.java" <<'EOF'
import org.apache.kafka.common.Uuid;

public class Spellings {
    public static void main(String[] arguments) {
        String text = "6xM53_QBQaqbwEQAMlJIVg";
        Uuid id = Uuid.fromString(text);
        String alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        for (char last : alphabet.toCharArray()) {
            if (Uuid.fromString(text.substring(0, 21) + last).equals(id)) {
                System.out.print(last);
            }
        }
        System.out.println(" " + Uuid.fromString(text + "==").equals(id) + " " + Uuid.fromString(text.substring(0, 21) + "v"));
    }
}
EOF
result=$(run_java Spellings "$folder/Spellings.java")
check "last characters, with padding, printed" "ghijklmnopqrstuv true 6xM53_QBQaqbwEQAMlJIVg" "$result"
