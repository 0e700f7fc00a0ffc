{{/* What the Prometheus operator scrapes, of a PodMonitor or a ServiceMonitor. */}}
{{- define "kdedup.endpoint" -}}
- port: http
  path: /metrics
  scheme: {{ include "kdedup.scheme" .root | lower }}
  {{- with .monitor.interval }}
  interval: {{ . }}
  {{- end }}
  {{- with .monitor.basicAuth }}
  basicAuth:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .monitor.tlsConfig }}
  tlsConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
