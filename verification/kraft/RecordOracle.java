import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HexFormat;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.metadata.MetadataJsonConverters;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.metadata.MetadataRecordSerde;
import org.apache.kafka.metadata.util.BatchFileReader;
import org.apache.kafka.metadata.util.BatchFileWriter;
import org.apache.kafka.raft.ControlRecord;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/** Encodes, decodes and prints records, batches and snapshots by Kafka's own classes; each input line has a reply line. */
public final class RecordOracle {
    private static final HexFormat HEX = HexFormat.of();
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final MetadataRecordSerde SERDE = new MetadataRecordSerde();

    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream output = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String answer;
            try {
                answer = answer(line.split("\t", -1));
            } catch (Exception error) {
                answer = "ERROR " + error.toString().replace('\n', ' ');
            }
            output.println(answer);
            output.flush();
        }
    }

    private static String answer(String[] parts) throws Exception {
        switch (parts[0]) {
            case "record":
                return HEX.formatHex(encode(record(MAPPER.readTree(parts[1])))) + "\t" + decode(HEX.parseHex(parts[2]));
            case "control":
                return HEX.formatHex(control(parts[1], Short.parseShort(parts[2]), MAPPER.readTree(parts[3])));
            case "batch":
                return HEX.formatHex(batch(Integer.parseInt(parts[1]), parts[2].split(",")));
            case "values":
                return values(HEX.parseHex(parts[1]));
            case "checkpoint":
                return checkpoint(parts[1]).toString();
            case "write":
                return write(Path.of(parts[1]), (ArrayNode) MAPPER.readTree(parts[2]));
            default:
                throw new IllegalArgumentException(parts[0]);
        }
    }

    private static ApiMessageAndVersion record(JsonNode document) {
        short type = MetadataRecordType.valueOf(document.get("type").textValue()).id();
        short version = document.get("version").shortValue();
        return new ApiMessageAndVersion(MetadataJsonConverters.readJson(document.get("data"), type, version), version);
    }

    private static byte[] encode(ApiMessageAndVersion record) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(SERDE.recordSize(record, cache));
        SERDE.write(record, cache, new ByteBufferAccessor(buffer));
        return buffer.array();
    }

    private static JsonNode decode(byte[] bytes) {
        return json(SERDE.read(new ByteBufferAccessor(ByteBuffer.wrap(bytes)), bytes.length));
    }

    private static JsonNode json(ApiMessageAndVersion record) {
        ObjectNode document = new ObjectNode(JsonNodeFactory.instance);
        document.put("type", MetadataRecordType.fromId(record.message().apiKey()).toString());
        document.put("version", record.version());
        document.set("data", MetadataJsonConverters.writeJson(record.message(), record.version()));
        return document;
    }

    private static byte[] control(String name, short version, JsonNode data) throws Exception {
        Class<?> converter = Class.forName("org.apache.kafka.common.message." + name + "JsonConverter");
        Object message = converter.getMethod("read", JsonNode.class, short.class).invoke(null, data, version);
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor((ApiMessage) message, version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    private static byte[] batch(int codec, String[] values) {
        SimpleRecord[] records = new SimpleRecord[values.length];
        for (int i = 0; i < values.length; i++) {
            records[i] = new SimpleRecord(1234L, HEX.parseHex(values[i]));
        }
        Compression compression = Compression.of(CompressionType.forId(codec)).build();
        ByteBuffer buffer = MemoryRecords.withRecords(17L, compression, 3, records).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    private static String values(byte[] bytes) {
        StringBuilder values = new StringBuilder();
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                byte[] value = new byte[record.valueSize()];
                record.value().get(value);
                values.append(values.isEmpty() ? "" : ",").append(HEX.formatHex(value));
            }
        }
        return values.toString();
    }

    private static ArrayNode checkpoint(String path) throws Exception {
        ArrayNode documents = new ArrayNode(JsonNodeFactory.instance);
        try (BatchFileReader reader = new BatchFileReader.Builder().setPath(path).build()) {
            while (reader.hasNext()) {
                BatchFileReader.BatchAndType batch = reader.next();
                if (batch.isControl()) {
                    for (ApiMessageAndVersion record : batch.batch().records()) {
                        documents.add(record.message().getClass().getSimpleName());
                    }
                } else {
                    batch.batch().records().forEach(record -> documents.add(json(record)));
                }
            }
        }
        return documents;
    }

    private static String write(Path path, ArrayNode documents) throws Exception {
        try (BatchFileWriter writer = BatchFileWriter.open(path)) {
            for (JsonNode document : documents) {
                writer.append(record(document));
            }
        }
        return "written";
    }
}
