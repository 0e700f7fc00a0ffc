#!/usr/bin/env bash
# AWS Glue's schema-registry-serde 1.1.25 for Java, ProtobufSerializer. A schema has a message Order; another version of
# it has one more message, which nothing refers to.
#
# One would guess: the number before a message says where its type stands in the file, as in Confluent's framing, so a
# type that is added behind all others leaves the bytes of an Order alone.
# Seen: the number is the place of the type among the full names in the order of the alphabet. Address, declared behind
# Order, moves Order from 0 to 1, and Zone, declared before it, does not. One Order has other bytes in two versions of
# the schema that differ in nothing that it uses.
#
# Needs bash, Java 17 and Maven. Ends with 0 while it is so, and with 1 when that changes.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat >pom.xml <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>example</groupId><artifactId>numbers</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>software.amazon.glue</groupId><artifactId>schema-registry-serde</artifactId><version>1.1.25</version></dependency>
  </dependencies>
</project>
POM
mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies -DoutputDirectory="$work/lib" >/dev/null
cat >Numbers.java <<'JAVA'
import com.amazonaws.services.schemaregistry.common.configs.GlueSchemaRegistryConfiguration;
import com.amazonaws.services.schemaregistry.serializers.protobuf.ProtobufSerializer;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import java.util.HexFormat;
import java.util.Map;

public class Numbers {
    public static void main(String[] args) throws Exception {
        ProtobufSerializer serializer = new ProtobufSerializer(
            new GlueSchemaRegistryConfiguration(Map.of("region", "eu-central-1", "dataFormat", "PROTOBUF")));
        for (String types : new String[] {"Order", "Order Address", "Zone Order"}) {
            FileDescriptorProto.Builder file = FileDescriptorProto.newBuilder().setName("shop.proto").setPackage("shop")
                .setSyntax("proto3");
            for (String type : types.split(" ")) {
                file.addMessageType(DescriptorProto.newBuilder().setName(type).addField(FieldDescriptorProto.newBuilder()
                    .setName("id").setNumber(1).setType(FieldDescriptorProto.Type.TYPE_STRING)
                    .setLabel(FieldDescriptorProto.Label.LABEL_OPTIONAL)));
            }
            Descriptor order = FileDescriptor.buildFrom(file.build(), new FileDescriptor[0]).findMessageTypeByName("Order");
            DynamicMessage message = DynamicMessage.newBuilder(order).setField(order.findFieldByName("id"), "a-1").build();
            System.out.println(types + ": " + HexFormat.of().formatHex(serializer.serialize(message)));
        }
    }
}
JAVA
got=$(java -cp "lib/*" Numbers.java 2>/dev/null)
want='Order: 000a03612d31
Order Address: 010a03612d31
Zone Order: 000a03612d31'
echo "$got"
if [[ $got != "$want" ]]; then
	echo "it has changed: it was: $want" >&2
	exit 1
fi
