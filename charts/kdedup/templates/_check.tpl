{{/* What the schema cannot say. Every message names the value and the remedy. */}}
{{- define "kdedup.check" -}}
{{- $config := .Values.config -}}
{{- include "kdedup.checkSecrets" (dict "path" "config" "node" $config) -}}
{{- if include "kdedup.fromOutside" . -}}
{{- include "kdedup.checkOutside" . -}}
{{- else if not (dig "kafka" "brokers" nil $config) -}}
{{- fail "config.kafka.brokers is required: the brokers as host:port" -}}
{{- else if not (dig "topics" nil $config) -}}
{{- fail "config.topics is required: at least one entry with input, output, consumer_group and message_id" -}}
{{- end -}}
{{- if hasKey $config "instance" -}}
{{- fail "config.instance must not be set: the chart gives each pod its own name as the instance" -}}
{{- end -}}
{{- if dig "server" "listen" nil $config -}}
{{- fail "config.server.listen must not be set: the probes and the Service need 0.0.0.0:9480, which the chart sets" -}}
{{- end -}}
{{- include "kdedup.checkAPI" . -}}
{{- if contains "${" (include "kdedup.storeType" .) -}}
{{- fail "config.store.type must be written out: the chart makes a volume for the embedded store and for the index of a claim log only" -}}
{{- end -}}
{{- if contains "${" (include "kdedup.shutdownTimeout" .) -}}
{{- fail "config.shutdown_timeout must be written out: terminationGracePeriodSeconds follows from it" -}}
{{- end -}}
{{- if .Values.networkPolicy.egress -}}
{{- range $section := list "tracing" "metrics.otlp" -}}
{{- range $key := list "enabled" "endpoint" "protocol" -}}
{{- if contains "${" (include "kdedup.at" (dict "path" (printf "%s.%s" $section $key) "config" $config)) -}}
{{- fail (printf "config.%s.%s must be written out with networkPolicy.egress: the policy admits the collector's port" $section $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "kdedup.checkEnv" . -}}
{{- include "kdedup.checkScrapers" . -}}
{{- include "kdedup.checkEmbedded" . -}}
{{- include "kdedup.checkIndex" . -}}
{{- include "kdedup.checkKeepers" . -}}
{{- if eq .Values.kind "Deployment" -}}
{{- range $i, $topic := $config.topics -}}
{{- if eq (toString $topic.static_membership) "true" -}}
{{- fail (printf "config.topics[%d].static_membership needs kind: StatefulSet: the pods of a Deployment do not keep their names" $i) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The pods of a Service must answer the same: keys in the files of one are not those of the next. */}}
{{- define "kdedup.checkAPI" -}}
{{- if .Values.api.enabled -}}
{{- $api := dig "api" dict .Values.config -}}
{{- if $api.listen -}}
{{- fail "config.api.listen must not be set with api.enabled: the Service needs 0.0.0.0:9481, which the chart sets" -}}
{{- end -}}
{{- if not (include "kdedup.fromOutside" .) -}}
{{- if not $api.scopes -}}
{{- fail "config.api.scopes is required with api.enabled: at least one entry with a name" -}}
{{- else if not $api.callers -}}
{{- fail "config.api.callers is required with api.enabled: who may call, by a token or a certificate" -}}
{{- else if not (dig "tls" "cert_file" "" $api) -}}
{{- fail "config.api.tls.cert_file is required with api.enabled: tokens must not cross the network in the clear; mount it with extraVolumes" -}}
{{- end -}}
{{- end -}}
{{- $files := or (dig "keys" "path" "" $api) (eq (dig "keys" "type" "" $api) "files") -}}
{{- if and $files (or (gt (int .Values.replicas) 1) .Values.autoscaling.enabled) -}}
{{- fail "config.api.keys must have type: store with more than one replica: each pod would run the work of a key once" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Values that decide over the objects must not be overridden where the templates do not see it. */}}
{{- define "kdedup.checkEnv" -}}
{{- $ours := include "kdedup.read" . | fromYaml -}}
{{- range $env := .Values.extraEnv -}}
{{- if has $env.name (list "KDEDUP_INSTANCE" "KDEDUP_SERVER_LISTEN" "KDEDUP_API_LISTEN") -}}
{{- fail (printf "extraEnv must not hold %s: the chart sets it" $env.name) -}}
{{- end -}}
{{- with get $ours $env.name -}}
{{- fail (printf "extraEnv must not hold %s: set config.%s, the chart reads it" $env.name .) -}}
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

{{/* Keepers are for a claim log, and answer only whom they know. */}}
{{- define "kdedup.checkKeepers" -}}
{{- if .Values.keepers.enabled -}}
{{- $keepers := dig "store" "keepers" dict .Values.config -}}
{{- if ne (include "kdedup.logs" .) "true" -}}
{{- fail (printf "keepers need a claim log: set config.store.type to kafka, or to cassandra with layout: log, got %s" (include "kdedup.storeType" .)) -}}
{{- end -}}
{{- range $key := list "keep" "copies" "listen" "advertise" "secret" -}}
{{- if hasKey $keepers $key -}}
{{- fail (printf "config.store.keepers.%s must not be set with keepers.enabled: the chart sets it, see the values under keepers" $key) -}}
{{- end -}}
{{- end -}}
{{- $files := dig "tls" "cert_file" "" $keepers -}}
{{- if and (not .Values.keepers.secret) (not $files) (not (include "kdedup.fromOutside" .)) -}}
{{- fail "keepers.secret must name a Secret, whose key secret holds what `openssl rand -hex 32` makes; or set config.store.keepers.tls" -}}
{{- end -}}
{{- if and .Values.keepers.secret $files -}}
{{- fail "keepers.secret must be empty with config.store.keepers.tls: connections have one of them" -}}
{{- end -}}
{{- if gt (int .Values.keepers.copies) (int .Values.keepers.replicas) -}}
{{- fail (printf "keepers.replicas must be at least keepers.copies, %d, got %d" (int .Values.keepers.copies) (int .Values.keepers.replicas)) -}}
{{- end -}}
{{- range $env := .Values.extraEnv -}}
{{- if hasPrefix "KDEDUP_STORE_KEEPERS_" $env.name -}}
{{- fail (printf "extraEnv must not hold %s with keepers.enabled: the chart sets it, see the values under keepers" $env.name) -}}
{{- end -}}
{{- end -}}
{{- else -}}
{{- include "kdedup.checkShared" . -}}
{{- end -}}
{{- end -}}

{{/* Pods that share the claims out among themselves. */}}
{{- define "kdedup.checkShared" -}}
{{- $keepers := dig "store" "keepers" dict .Values.config -}}
{{- $keep := toString (dig "keep" "all" $keepers) -}}
{{- if contains "${" $keep -}}
{{- fail "config.store.keepers.keep must be written out: the chart makes the way between the pods" -}}
{{- end -}}
{{- if or (eq $keep "none") (eq $keep "only") -}}
{{- fail (printf "config.store.keepers.keep must be all or shared, got %s: set keepers.enabled in its place, which makes pods that keep (only) and has the others keep nothing (none)" $keep) -}}
{{- end -}}
{{- if eq (include "kdedup.shared" .) "true" -}}
{{- range $key := list "listen" "advertise" -}}
{{- if hasKey $keepers $key -}}
{{- fail (printf "config.store.keepers.%s must not be set: the chart has the pods listen on 9482, and advertise their addresses" $key) -}}
{{- end -}}
{{- end -}}
{{- if dig "tls" "cert_file" "" $keepers -}}
{{- fail "config.store.keepers.tls needs keepers.enabled, whose pods have names for certificates; or set keepers.secret in its place" -}}
{{- end -}}
{{- if and (not .Values.keepers.secret) (not $keepers.secret) (not (include "kdedup.fromOutside" .)) -}}
{{- fail "keepers.secret must name a Secret with config.store.keepers.keep: shared, whose key secret holds what `openssl rand -hex 32` makes" -}}
{{- end -}}
{{- range $env := .Values.extraEnv -}}
{{- if has $env.name (list "POD_IP" "KDEDUP_STORE_KEEPERS_LISTEN" "KDEDUP_STORE_KEEPERS_ADVERTISE") -}}
{{- fail (printf "extraEnv must not hold %s with config.store.keepers.keep: shared: the chart sets it" $env.name) -}}
{{- end -}}
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

{{/* A ConfigMap is no place for secrets. */}}
{{- define "kdedup.checkSecrets" -}}
{{- $path := .path -}}
{{- if kindIs "map" .node -}}
{{- range $key, $value := .node -}}
{{- $inner := printf "%s.%s" $path $key -}}
{{- $secret := or (has $key (list "password" "sentinel_password" "client_secret" "secret" "token" "hmac_key")) (and (eq $key "value") (or (hasPrefix "config.tracing.headers" $path) (hasPrefix "config.metrics.otlp.headers" $path))) -}}
{{- if and $secret (not (kindIs "map" $value)) (not (kindIs "slice" $value)) -}}
{{- $text := kindIs "invalid" $value | ternary "" (toString $value) -}}
{{- if not (or (eq $text "") (hasPrefix "file:" $text) (regexMatch "(^|[^$])([$][$])*[$][{][A-Za-z_]" $text)) -}}
{{- fail (printf "%s must not be written out, everybody who may read the ConfigMap would read it: write ${NAME} or file:/path, see extraEnv and extraVolumes" $inner) -}}
{{- end -}}
{{- else -}}
{{- include "kdedup.checkSecrets" (dict "path" $inner "node" $value) -}}
{{- end -}}
{{- end -}}
{{- else if kindIs "slice" .node -}}
{{- range $i, $value := .node -}}
{{- include "kdedup.checkSecrets" (dict "path" (printf "%s[%d]" $path $i) "node" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* With the file of somebody else, config holds only what decides over the objects. */}}
{{- define "kdedup.checkOutside" -}}
{{- if and .Values.configFrom.configMap .Values.configFrom.secret -}}
{{- fail "configFrom must name a ConfigMap or a Secret, not both" -}}
{{- end -}}
{{- if .Values.autoscaling.enabled -}}
{{- fail "autoscaling needs brokers, groups and topics in config: it does not see the file of configFrom" -}}
{{- end -}}
{{- $known := include "kdedup.read" . | fromYaml | values -}}
{{- range $path := include "kdedup.leaves" (dict "path" "" "node" .Values.config) | splitList "\n" -}}
{{- if and $path (not (has $path $known)) -}}
{{- fail (printf "config.%s must not be set with configFrom: write it into the file. Beside the file config takes %s" $path (join ", " (sortAlpha $known))) -}}
{{- end -}}
{{- if contains "${" (include "kdedup.at" (dict "path" $path "config" $.Values.config)) -}}
{{- fail (printf "config.%s must be written out with configFrom: it becomes a variable that overrides the file" $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The paths of all settings, one a line. */}}
{{- define "kdedup.leaves" -}}
{{- $path := .path -}}
{{- if kindIs "map" .node -}}
{{- range $key, $value := .node -}}
{{- include "kdedup.leaves" (dict "path" (trimPrefix "." (printf "%s.%s" $path $key)) "node" $value) -}}
{{- end -}}
{{- else -}}
{{- $path }}{{ "\n" -}}
{{- end -}}
{{- end -}}

{{/* The policy would stop a scraper that nobody has named, and the alerts would know nothing of it. */}}
{{- define "kdedup.checkScrapers" -}}
{{- if and .Values.podMonitor.enabled .Values.serviceMonitor.enabled -}}
{{- fail "podMonitor and serviceMonitor must not both be enabled: every pod would be counted twice" -}}
{{- end -}}
{{- $scrapers := dict "podMonitor" .Values.podMonitor.enabled "serviceMonitor" .Values.serviceMonitor.enabled "podAnnotations" (eq (get .Values.podAnnotations "prometheus.io/scrape") "true") -}}
{{- range $name, $there := $scrapers -}}
{{- if and $there $.Values.networkPolicy.enabled (not $.Values.networkPolicy.ingressFrom) -}}
{{- fail (printf "networkPolicy.ingressFrom must name Prometheus with %s, for example by its namespace; or set networkPolicy.enabled: false" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
