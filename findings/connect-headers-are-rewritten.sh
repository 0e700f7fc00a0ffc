#!/usr/bin/env bash
# Kafka Connect 4.3.1: what its header converters make of the text of a header. A source task with text in a header, as
# Debezium's outbox router has the ID of an event, writes it with the converter; a mirror reads it with the converter
# and writes it again.
#
# One would guess: the text arrives as it is, or at least as one JSON string.
# Seen: the JsonConverter writes a document, {"schema":…,"payload":…}, unless schemas.enable is false. The
# SimpleHeaderConverter, the default, takes what looks like a number for one: 007 comes out as 7 and 00000120e4 as
# 1200000, so two IDs may become one. A header of bytes, as a mirror has it, comes out of the SimpleHeaderConverter in
# base64: a-1 as YS0x. Only the ByteArrayConverter leaves all of them alone.
#
# Needs bash, Java 17 and Maven. Ends with 0 while it is so, and with 1 when that changes.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >pom.xml <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>headers</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>connect-runtime</artifactId><version>4.3.1</version></dependency>
  </dependencies>
</project>
POM
mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory="$work/lib" >/dev/null
cat >Headers.java <<'JAVA'
import java.util.Map;
import org.apache.kafka.connect.converters.ByteArrayConverter;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.storage.SimpleHeaderConverter;

public class Headers {
    public static void main(String[] args) throws Exception {
        JsonConverter json = new JsonConverter();
        json.configure(Map.of("converter.type", "header"));
        System.out.println("JsonConverter: " + new String(json.fromConnectHeader("t", "id", Schema.STRING_SCHEMA, "a-1")));
        HeaderConverter simple = new SimpleHeaderConverter(), bytes = new ByteArrayConverter();
        for (String text : new String[] {"a-1", "007", "00000120e4"}) {
            System.out.println("SimpleHeaderConverter, read and written: " + text + " as " + again(simple, text));
        }
        System.out.println("SimpleHeaderConverter, of bytes: a-1 as "
            + new String(simple.fromConnectHeader("t", "id", Schema.BYTES_SCHEMA, "a-1".getBytes())));
        System.out.println("ByteArrayConverter, read and written: 00000120e4 as " + again(bytes, "00000120e4"));
    }
    static String again(HeaderConverter converter, String text) {
        SchemaAndValue read = converter.toConnectHeader("t", "id", text.getBytes());
        return new String(converter.fromConnectHeader("t", "id", read.schema(), read.value()));
    }
}
JAVA
got=$(java -cp "lib/*" Headers.java 2>/dev/null)
want='JsonConverter: {"schema":{"type":"string","optional":false},"payload":"a-1"}
SimpleHeaderConverter, read and written: a-1 as a-1
SimpleHeaderConverter, read and written: 007 as 7
SimpleHeaderConverter, read and written: 00000120e4 as 1200000
SimpleHeaderConverter, of bytes: a-1 as YS0x
ByteArrayConverter, read and written: 00000120e4 as 00000120e4'
echo "$got"
if [[ $got != "$want" ]]; then
	echo "it has changed: it was: $want" >&2
	exit 1
fi
