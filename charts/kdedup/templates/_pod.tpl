{{- define "kdedup.podTemplate" -}}
metadata:
  labels:
    {{- $labels := merge (include "kdedup.selectorLabels" . | fromYaml) .Values.podLabels }}
    {{- include "kdedup.labelsWith" (dict "root" . "labels" $labels) | nindent 4 }}
  annotations:
    # A new configuration is a new pod, but for what a running one applies.
    checksum/config: {{ include "kdedup.fixedConfig" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- include "kdedup.podSpec" . | nindent 2 }}
  serviceAccountName: {{ include "kdedup.serviceAccountName" . }}
  # After the grace period a batch in hand is cut off. It is delivered again, but somebody waits for it.
  terminationGracePeriodSeconds: {{ include "kdedup.gracePeriod" . }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- range . }}
    - {{- toYaml . | nindent 6 }}
      {{- if not (hasKey . "labelSelector") }}
      labelSelector:
        matchLabels:
          {{- include "kdedup.selectorLabels" $ | nindent 10 }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- with .Values.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: kdedup
      args: [run, -c, /etc/kdedup/kdedup.yaml]
      {{- include "kdedup.container" . | nindent 6 }}
      env:
        - name: KDEDUP_INSTANCE
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- with include "kdedup.fileEnv" . | fromYamlArray }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- with include "kdedup.keepersEnv" . | fromYamlArray }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
        {{- if .Values.rack.fromZone }}
        - name: KDEDUP_KAFKA_RACK
          valueFrom:
            fieldRef:
              fieldPath: metadata.labels['topology.kubernetes.io/zone']
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .Values.lifecycle }}
      lifecycle:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: http
          containerPort: 9480
          protocol: TCP
        {{- if eq (include "kdedup.answers" .) "true" }}
        - name: keepers
          containerPort: 9482
          protocol: TCP
        {{- end }}
        {{- if and .Values.api.enabled (ne (default "" .Role) "keepers") }}
        - name: api
          containerPort: 9481
          protocol: TCP
        {{- end }}
      # kdedup answers while its start waits for Kafka or the store.
      startupProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ include "kdedup.scheme" . }}}
        periodSeconds: 2
        timeoutSeconds: 2
        failureThreshold: 45
      livenessProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ include "kdedup.scheme" . }}}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      # kdedup gives its checks 2 s.
      readinessProbe:
        httpGet: {path: /readyz, port: http, scheme: {{ include "kdedup.scheme" . }}}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 3
      {{- include "kdedup.resources" (dict "own" (eq (default "" .Role) "keepers" | ternary (.Values.keepers.resources | default .Values.resources) .Values.resources)) | nindent 6 }}
      volumeMounts:
        {{- include "kdedup.volumeMounts" . | nindent 8 }}
        {{- if or (eq (include "kdedup.storeType" .) "embedded") (eq (include "kdedup.hasIndex" .) "true") }}
        - name: store
          mountPath: /var/lib/kdedup
        {{- end }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    {{- include "kdedup.volumes" (dict "root" . "configMap" (include "kdedup.fullname" .)) | nindent 4 }}
    {{- if eq (include "kdedup.claim" .) "existing" }}
    - name: store
      persistentVolumeClaim:
        claimName: {{ .Values.persistence.existingClaim }}
    {{- end }}
    {{- if and (eq (include "kdedup.hasIndex" .) "true") (ne (default "" .Role) "keepers") }}
    # The index of the claim log. A new pod makes it again from the log.
    - name: store
      emptyDir: {}
    {{- end }}
{{- end -}}

{{/* What the pods of the release, of the setup and of the test have in common. */}}
{{- define "kdedup.podSpec" -}}
automountServiceAccountToken: false
# Variables like KDEDUP_PORT, which a Service of this name would bring, look like settings.
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end -}}

{{- define "kdedup.container" -}}
image: {{ include "kdedup.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- with .Values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Those of the container, or others in their place. */}}
{{- define "kdedup.resources" -}}
{{- with .own }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "kdedup.volumeMounts" -}}
- name: config
  mountPath: /etc/kdedup
  readOnly: true
{{- with .Values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kdedup.volumes" -}}
- name: config
  {{- with .root.Values.configFrom.secret }}
  secret:
    secretName: {{ . }}
    defaultMode: 0440
  {{- else }}
  configMap:
    name: {{ .root.Values.configFrom.configMap | default .configMap }}
  {{- end }}
{{- with .root.Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
