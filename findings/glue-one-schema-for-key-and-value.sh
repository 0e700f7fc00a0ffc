#!/usr/bin/env bash
# AWS Glue's schema-registry-serde 1.1.25 for Java, GlueSchemaRegistryKafkaSerializer with its defaults, against moto
# 5.2.5. One serializer is configured for keys and one for values; a producer writes a record with both.
#
# One would guess: key and value have a schema each, orders-key and orders-value, as with Confluent's serializers.
# Seen: both have one schema, by the name of the topic. The key's is its version 1 and the value's its version 2, so the
# newest version of it is that of whichever serializer met a new schema last, and says nothing of the other part.
#
# Needs bash, Java 17, Maven and Python 3 with pip. Ends with 0 while it is so, and with 1 when that changes.
set -euo pipefail

work=$(mktemp -d)
server=
cleanup() {
	if [[ -n $server ]]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi
	rm -rf "$work"
}
trap cleanup EXIT
cd "$work"
cat >pom.xml <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>versions</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>software.amazon.glue</groupId><artifactId>schema-registry-serde</artifactId><version>1.1.25</version></dependency>
  </dependencies>
</project>
POM
mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory="$work/lib" >/dev/null
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target packages \
	'moto[glue]==5.2.5' flask==3.1.2 flask-cors==6.0.1 >/dev/null 2>&1
port=39655
PYTHONPATH=packages python3 -m moto.server -H 127.0.0.1 -p "$port" >moto.log 2>&1 &
server=$!
until python3 -c "import socket; socket.create_connection(('127.0.0.1', $port)).close()" 2>/dev/null; do
	kill -0 "$server" || { cat moto.log >&2; exit 1; }
	sleep 0.2
done
cat >Versions.java <<'JAVA'
import com.amazonaws.services.schemaregistry.serializers.GlueSchemaRegistryKafkaSerializer;
import java.net.URI;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecordBuilder;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.glue.GlueClient;

public class Versions {
    public static void main(String[] args) {
        Map<String, Object> conf = Map.of("endpoint", args[0], "region", "eu-central-1", "dataFormat", "AVRO",
            "avroRecordType", "GENERIC_RECORD", "schemaAutoRegistrationEnabled", true);
        for (boolean ofKey : new boolean[] {true, false}) {
            Schema schema = new Schema.Parser().parse("{\"type\":\"record\",\"name\":\"" + (ofKey ? "OfKey" : "OfValue")
                + "\",\"fields\":[{\"name\":\"id\",\"type\":\"string\"}]}");
            GlueSchemaRegistryKafkaSerializer serializer = new GlueSchemaRegistryKafkaSerializer();
            serializer.configure(conf, ofKey);
            serializer.serialize("orders", new GenericRecordBuilder(schema).set("id", "a-1").build());
        }
        GlueClient glue = GlueClient.builder().endpointOverride(URI.create(args[0])).region(Region.EU_CENTRAL_1).build();
        for (long version = 1; version <= 2; version++) {
            long number = version;
            String text = glue.getSchemaVersion(asked -> asked
                .schemaId(id -> id.registryName("default-registry").schemaName("orders"))
                .schemaVersionNumber(of -> of.versionNumber(number))).schemaDefinition();
            System.out.println("orders, version " + version + ": " + new Schema.Parser().parse(text).getName());
        }
        System.exit(0);
    }
}
JAVA
got=$(AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any java -cp "lib/*" Versions.java "http://127.0.0.1:$port" 2>log) || {
	cat log >&2
	exit 1
}
want='orders, version 1: OfKey
orders, version 2: OfValue'
echo "$got"
if [[ $got != "$want" ]]; then
	echo "it has changed: it was: $want" >&2
	exit 1
fi
