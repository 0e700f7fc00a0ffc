{{/* kdedup.yaml. The pod's name becomes the instance by KDEDUP_INSTANCE, see _pod.tpl. */}}
{{- define "kdedup.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "server" (include "kdedup.server" . | fromYaml) -}}
{{- if .Values.api.enabled -}}
{{- $_ := set $config "api" (merge (dict "listen" "0.0.0.0:9481") (dig "api" dict $config)) -}}
{{- end -}}
{{- $_ := set $config "reload" (dict "watch" (eq (include "kdedup.watches" .) "true")) -}}
{{- if eq (include "kdedup.storeType" .) "embedded" -}}
{{- $path := dig "store" "embedded" "path" "/var/lib/kdedup/store" $config -}}
{{- $store := merge (dict "type" "embedded" "embedded" (dict "path" $path)) (dig "store" dict $config) -}}
{{- $_ := set $config "store" $store -}}
{{- end -}}
{{- if eq (include "kdedup.indexed" .) "true" -}}
{{- $path := include "kdedup.indexPath" . -}}
{{- $index := dict "type" "kafka" "kafka" (dict "path" $path) -}}
{{- if eq (include "kdedup.storeType" .) "cassandra" -}}
{{- $index = dict "cassandra" (dict "log" (dict "path" $path)) -}}
{{- end -}}
{{- $store := merge $index (dig "store" dict $config) -}}
{{- $_ := set $config "store" $store -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Not empty where somebody else makes the file. */}}
{{- define "kdedup.fromOutside" -}}
{{- or .Values.configFrom.configMap .Values.configFrom.secret -}}
{{- end -}}

{{/* The settings that decide over the objects, and the variables that override them. */}}
{{- define "kdedup.read" -}}
KDEDUP_SHUTDOWN_TIMEOUT: shutdown_timeout
KDEDUP_STORE_TYPE: store.type
KDEDUP_STORE_KEEPERS_KEEP: store.keepers.keep
KDEDUP_STORE_EMBEDDED_PATH: store.embedded.path
KDEDUP_STORE_KAFKA_INDEX: store.kafka.index
KDEDUP_STORE_KAFKA_PATH: store.kafka.path
KDEDUP_STORE_CASSANDRA_LAYOUT: store.cassandra.layout
KDEDUP_STORE_CASSANDRA_LOG_INDEX: store.cassandra.log.index
KDEDUP_STORE_CASSANDRA_LOG_PATH: store.cassandra.log.path
KDEDUP_SERVER_TLS_CERT_FILE: server.tls.cert_file
KDEDUP_TRACING_ENABLED: tracing.enabled
KDEDUP_TRACING_ENDPOINT: tracing.endpoint
KDEDUP_TRACING_PROTOCOL: tracing.protocol
KDEDUP_METRICS_OTLP_ENABLED: metrics.otlp.enabled
KDEDUP_METRICS_OTLP_ENDPOINT: metrics.otlp.endpoint
KDEDUP_METRICS_OTLP_PROTOCOL: metrics.otlp.protocol
{{- end -}}

{{/* What the file of somebody else must agree in with the objects overrides it, as a list of variables. */}}
{{- define "kdedup.fileEnv" -}}
{{- if include "kdedup.fromOutside" . -}}
{{- $type := include "kdedup.storeType" . -}}
{{- $ours := dict "shutdown_timeout" (include "kdedup.shutdownTimeout" .) "store.type" $type -}}
{{- if eq $type "embedded" -}}
{{- $_ := set $ours "store.embedded.path" (dig "store" "embedded" "path" "/var/lib/kdedup/store" .Values.config) -}}
{{- else if eq $type "kafka" -}}
{{- $_ := set $ours "store.kafka.index" (dig "store" "kafka" "index" "files" .Values.config) -}}
{{- else if eq $type "cassandra" -}}
{{- $_ := set $ours "store.cassandra.layout" (dig "store" "cassandra" "layout" "rows" .Values.config) -}}
{{- $_ := set $ours "store.cassandra.log.index" (dig "store" "cassandra" "log" "index" "files" .Values.config) -}}
{{- end -}}
{{- if eq (include "kdedup.indexed" .) "true" -}}
{{- $_ := set $ours (include "kdedup.indexSetting" .) (include "kdedup.indexPath" .) -}}
{{- end -}}
{{- $env := list (dict "name" "KDEDUP_SERVER_LISTEN" "value" "0.0.0.0:9480") -}}
{{- if $.Values.api.enabled -}}
{{- $env = append $env (dict "name" "KDEDUP_API_LISTEN" "value" "0.0.0.0:9481") -}}
{{- end -}}
{{- range $name, $path := include "kdedup.read" . | fromYaml -}}
{{- $value := get $ours $path -}}
{{- if not $value -}}
{{- $value = include "kdedup.at" (dict "path" $path "config" $.Values.config) -}}
{{- end -}}
{{- with $value -}}
{{- $env = append $env (dict "name" $name "value" (toString .)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $env -}}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{/* The setting at a path such as server.tls.cert_file, or nothing. */}}
{{- define "kdedup.at" -}}
{{- $node := .config -}}
{{- range splitList "." .path -}}
{{- $node = kindIs "map" $node | ternary (get (kindIs "map" $node | ternary $node dict) .) "" -}}
{{- end -}}
{{- $node -}}
{{- end -}}

{{/* Where the claims of the embedded store are: on a volume of its own, on one that exists, or nowhere. */}}
{{- define "kdedup.claim" -}}
{{- if eq (include "kdedup.storeType" .) "embedded" -}}
{{- empty .Values.persistence.existingClaim | ternary "own" "existing" -}}
{{- end -}}
{{- end -}}

{{/* Whether pods keep the index of a claim log in files. */}}
{{- define "kdedup.indexed" -}}
{{- if eq (include "kdedup.storeType" .) "cassandra" -}}
{{- and (eq (dig "store" "cassandra" "layout" "rows" .Values.config) "log") (ne (dig "store" "cassandra" "log" "index" "files" .Values.config) "memory") -}}
{{- else -}}
{{- and (eq (include "kdedup.storeType" .) "kafka") (ne (dig "store" "kafka" "index" "files" .Values.config) "memory") -}}
{{- end -}}
{{- end -}}

{{/* Whether these pods have an index: beside keepers, the lanes have none. */}}
{{- define "kdedup.hasIndex" -}}
{{- and (eq (include "kdedup.indexed" .) "true") (or (not .Values.keepers.enabled) (eq (default "" .Role) "keepers")) -}}
{{- end -}}

{{/* Whether the store has a claim log. */}}
{{- define "kdedup.logs" -}}
{{- or (eq (include "kdedup.storeType" .) "kafka") (and (eq (include "kdedup.storeType" .) "cassandra") (eq (dig "store" "cassandra" "layout" "rows" .Values.config) "log")) -}}
{{- end -}}

{{/* Whether the pods of the pipelines share the claims out among themselves. */}}
{{- define "kdedup.shared" -}}
{{- and (not .Values.keepers.enabled) (eq (include "kdedup.logs" .) "true") (eq (dig "store" "keepers" "keep" "all" .Values.config) "shared") -}}
{{- end -}}

{{/* Whether these pods answer others. */}}
{{- define "kdedup.answers" -}}
{{- or (eq (default "" .Role) "keepers") (eq (include "kdedup.shared" .) "true") -}}
{{- end -}}

{{- define "kdedup.keepersSecretEnv" -}}
{{- with .Values.keepers.secret -}}
- name: KDEDUP_STORE_KEEPERS_SECRET
  valueFrom:
    secretKeyRef:
      name: {{ . }}
      key: {{ $.Values.keepers.secretKey }}
{{- end -}}
{{- end -}}

{{/* Which part of the claims a pod keeps, and how it reaches the others, as a list of variables. */}}
{{- define "kdedup.keepersEnv" -}}
{{- if .Values.keepers.enabled -}}
{{- $keeps := eq (default "" .Role) "keepers" -}}
- name: KDEDUP_STORE_KEEPERS_KEEP
  value: {{ $keeps | ternary "only" "none" }}
- name: KDEDUP_STORE_KEEPERS_COPIES
  value: {{ .Values.keepers.copies | quote }}
{{- if $keeps }}
- name: KDEDUP_STORE_KEEPERS_LISTEN
  value: 0.0.0.0:9482
- name: KDEDUP_STORE_KEEPERS_ADVERTISE
  value: $(KDEDUP_INSTANCE).{{ include "kdedup.fullname" . }}-keepers.{{ .Release.Namespace }}:9482
{{- end }}
{{ include "kdedup.keepersSecretEnv" . }}
{{- else if eq (include "kdedup.shared" .) "true" -}}
# Names of pods that are not ready lead nowhere, and these must be reached. The brackets are for IPv6.
- name: POD_IP
  valueFrom:
    fieldRef:
      fieldPath: status.podIP
- name: KDEDUP_STORE_KEEPERS_LISTEN
  value: 0.0.0.0:9482
- name: KDEDUP_STORE_KEEPERS_ADVERTISE
  value: "[$(POD_IP)]:9482"
{{ include "kdedup.keepersSecretEnv" . }}
{{- else -}}
[]
{{- end -}}
{{- end -}}

{{/* The setting that names the directory of the index. */}}
{{- define "kdedup.indexSetting" -}}
{{- eq (include "kdedup.storeType" .) "cassandra" | ternary "store.cassandra.log.path" "store.kafka.path" -}}
{{- end -}}

{{- define "kdedup.indexPath" -}}
{{- $default := "/var/lib/kdedup/index" -}}
{{- if eq (include "kdedup.storeType" .) "cassandra" -}}
{{- dig "store" "cassandra" "log" "path" $default .Values.config -}}
{{- else -}}
{{- dig "store" "kafka" "path" $default .Values.config -}}
{{- end -}}
{{- end -}}

{{/* Whether running pods apply a new ConfigMap. Otherwise they are replaced, one after the other. */}}
{{- define "kdedup.watches" -}}
{{- dig "reload" "watch" false .Values.config -}}
{{- end -}}

{{/* What a pod must be replaced for. */}}
{{- define "kdedup.fixedConfig" -}}
{{- $config := include "kdedup.config" . | fromYaml -}}
{{- if eq (include "kdedup.watches" .) "true" -}}
{{- $config = omit $config "topics" -}}
{{- $_ := set $config "log" (omit (dig "log" dict $config) "level") -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* The endpoints listen on all interfaces: whoever may ask for message IDs must say who he is. Where names are
checked, that of the Service is one of them, for `helm test`. */}}
{{- define "kdedup.server" -}}
{{- $server := dig "server" dict .Values.config -}}
{{- $guarded := or (dig "auth" "username" "" $server) (dig "tls" "client_ca_file" "" $server) -}}
{{- $ours := dict "listen" "0.0.0.0:9480" -}}
{{- if not (hasKey $server "lookup") -}}
{{- $_ := set $ours "lookup" (not (empty $guarded)) -}}
{{- end -}}
{{- with $server.hosts -}}
{{- $hosts := kindIs "slice" . | ternary . (splitList "," (toString .)) -}}
{{- $_ := set $ours "hosts" (append $hosts (include "kdedup.fullname" $)) -}}
{{- end -}}
{{- merge $ours $server | toYaml -}}
{{- end -}}

{{- define "kdedup.scheme" -}}
{{- dig "server" "tls" "cert_file" "" .Values.config | empty | ternary "HTTP" "HTTPS" -}}
{{- end -}}

{{/* The ports of the collectors of traces and metrics that are in use, as a list. */}}
{{- define "kdedup.collectorPorts" -}}
{{- $ports := list -}}
{{- range $section := list (dig "tracing" dict .Values.config) (dig "metrics" "otlp" dict .Values.config) -}}
{{- if eq (toString $section.enabled) "true" -}}
{{- $normal := eq (toString $section.protocol) "grpc" | ternary "http://localhost:4317" "http://localhost:4318" -}}
{{- $endpoint := default $normal $section.endpoint -}}
{{- $scheme := hasPrefix "https:" $endpoint | ternary "443" "80" -}}
{{- $port := regexFind ":[0-9]+(/|$)" $endpoint | trimPrefix ":" | trimSuffix "/" | default $scheme -}}
{{- $ports = append $ports (int $port) -}}
{{- end -}}
{{- end -}}
{{- uniq $ports | toYaml -}}
{{- end -}}

{{- define "kdedup.storeType" -}}
{{- dig "store" "type" "kafka" .Values.config -}}
{{- end -}}

{{/* Seconds of a duration of kdedup, such as 30s, 1m30s or 1d12h, rounded up. */}}
{{- define "kdedup.seconds" -}}
{{- $units := dict "d" 86400.0 "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001 "us" 0.000001 "µs" 0.000001 "ns" 0.000000001 -}}
{{- $sum := 0.0 -}}
{{- range regexFindAll "[0-9.]+(d|h|ms|m|s|us|µs|ns)" . -1 -}}
{{- $unit := regexFind "[a-zµ]+$" . -}}
{{- $sum = addf $sum (mulf (float64 (trimSuffix $unit .)) (get $units $unit)) -}}
{{- end -}}
{{- ceil $sum | int64 -}}
{{- end -}}

{{- define "kdedup.shutdownTimeout" -}}
{{- dig "shutdown_timeout" "30s" .Values.config -}}
{{- end -}}

{{/* After shutdown_timeout the lanes leave their groups, the last scrape ends and the store is closed. */}}
{{- define "kdedup.gracePeriod" -}}
{{- add 15 (include "kdedup.seconds" (include "kdedup.shutdownTimeout" .)) -}}
{{- end -}}
