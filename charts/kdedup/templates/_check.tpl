{{/* What the schema cannot say. Every message names the value and the remedy. */}}
{{- define "kdedup.check" -}}
{{- $config := .Values.config -}}
{{- if not (dig "kafka" "brokers" nil $config) -}}
{{- fail "config.kafka.brokers is required: the brokers as host:port" -}}
{{- end -}}
{{- if not (dig "topics" nil $config) -}}
{{- fail "config.topics is required: at least one entry with input, output, consumer_group and message_id" -}}
{{- end -}}
{{- if hasKey $config "instance" -}}
{{- fail "config.instance must not be set: the chart gives each pod its own name as the instance" -}}
{{- end -}}
{{- if dig "server" "listen" nil $config -}}
{{- fail "config.server.listen must not be set: the probes and the Service need 0.0.0.0:9480, which the chart sets" -}}
{{- end -}}
{{- if contains "${" (include "kdedup.storeType" .) -}}
{{- fail "config.store.type must be written out: the chart makes a volume for the embedded store and for the index of a claim log only" -}}
{{- end -}}
{{- if contains "${" (include "kdedup.shutdownTimeout" .) -}}
{{- fail "config.shutdown_timeout must be written out: terminationGracePeriodSeconds follows from it" -}}
{{- end -}}
{{- if .Values.networkPolicy.egress -}}
{{- range $key := list "enabled" "endpoint" "protocol" -}}
{{- if contains "${" (dig "tracing" $key "" $config | toString) -}}
{{- fail (printf "config.tracing.%s must be written out with networkPolicy.egress: the policy admits the collector's port" $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "kdedup.checkEnv" . -}}
{{- include "kdedup.checkEmbedded" . -}}
{{- include "kdedup.checkIndex" . -}}
{{- if eq .Values.kind "Deployment" -}}
{{- range $i, $topic := $config.topics -}}
{{- if eq (toString $topic.static_membership) "true" -}}
{{- fail (printf "config.topics[%d].static_membership needs kind: StatefulSet: the pods of a Deployment do not keep their names" $i) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Values that decide over the objects must not be overridden where the templates do not see it. */}}
{{- define "kdedup.checkEnv" -}}
{{- $ours := dict "KDEDUP_SHUTDOWN_TIMEOUT" "config.shutdown_timeout" "KDEDUP_STORE_TYPE" "config.store.type" "KDEDUP_SERVER_TLS_CERT_FILE" "config.server.tls.cert_file" "KDEDUP_STORE_EMBEDDED_PATH" "config.store.embedded.path" "KDEDUP_STORE_KAFKA_INDEX" "config.store.kafka.index" "KDEDUP_STORE_KAFKA_PATH" "config.store.kafka.path" "KDEDUP_STORE_CASSANDRA_LAYOUT" "config.store.cassandra.layout" "KDEDUP_STORE_CASSANDRA_LOG_INDEX" "config.store.cassandra.log.index" "KDEDUP_STORE_CASSANDRA_LOG_PATH" "config.store.cassandra.log.path" "KDEDUP_TRACING_ENABLED" "config.tracing.enabled" "KDEDUP_TRACING_ENDPOINT" "config.tracing.endpoint" "KDEDUP_TRACING_PROTOCOL" "config.tracing.protocol" -}}
{{- range $env := .Values.extraEnv -}}
{{- if has $env.name (list "KDEDUP_INSTANCE" "KDEDUP_SERVER_LISTEN") -}}
{{- fail (printf "extraEnv must not hold %s: the chart sets it" $env.name) -}}
{{- end -}}
{{- with get $ours $env.name -}}
{{- fail (printf "extraEnv must not hold %s: set %s, the chart reads it" $env.name .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kdedup.checkIndex" -}}
{{- if eq (include "kdedup.indexed" .) "true" -}}
{{- $path := include "kdedup.indexPath" . -}}
{{- if not (hasPrefix "/var/lib/kdedup/" $path) -}}
{{- fail (printf "config.%s must lie under /var/lib/kdedup/, where the volume is mounted, got %s" (include "kdedup.indexSetting" .) $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kdedup.checkEmbedded" -}}
{{- if eq (include "kdedup.storeType" .) "embedded" -}}
{{- $path := dig "store" "embedded" "path" "/var/lib/kdedup/store" .Values.config -}}
{{- if ne .Values.kind "StatefulSet" -}}
{{- fail "the embedded store needs kind: StatefulSet, whose volume stays with the pod; or set config.store.type to kafka, cassandra or redis" -}}
{{- end -}}
{{- if ne (int .Values.replicas) 1 -}}
{{- fail (printf "the embedded store belongs to one process: replicas must be 1, got %d; or set config.store.type to kafka, cassandra or redis" (int .Values.replicas)) -}}
{{- end -}}
{{- if .Values.autoscaling.enabled -}}
{{- fail "the embedded store belongs to one process and cannot be scaled: disable autoscaling, or set config.store.type to kafka, cassandra or redis" -}}
{{- end -}}
{{- if not (hasPrefix "/var/lib/kdedup/" $path) -}}
{{- fail (printf "config.store.embedded.path must lie under /var/lib/kdedup/, where the volume is mounted, got %s" $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}
