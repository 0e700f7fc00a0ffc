{{/* 46 characters leave room for what Kubernetes and this chart append within 63. */}}
{{- define "kdedup.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 46 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "kdedup.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 46 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 46 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "kdedup.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 46 | trimSuffix "-" -}}
{{- end -}}

{{- define "kdedup.labels" -}}
{{- include "kdedup.labelsWith" (dict "root" . "labels" dict) -}}
{{- end -}}

{{- define "kdedup.ownLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "kdedup.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ include "kdedup.tag" . | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* Further labels give way to those of the chart, and `commonLabels` to both. */}}
{{- define "kdedup.labelsWith" -}}
{{- merge (include "kdedup.ownLabels" .root | fromYaml) .labels .root.Values.commonLabels | toYaml -}}
{{- end -}}

{{/* The component keeps the pods of the setup and of the test out of the selectors. A template that is given a Role is
for the pods of that component. */}}
{{- define "kdedup.selectorLabels" -}}
app.kubernetes.io/name: {{ include "kdedup.name" . }}
app.kubernetes.io/instance: {{ .Release.Name | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/component: {{ .Role | default "pipeline" }}
{{- end -}}

{{/* All pods of the release that stay. */}}
{{- define "kdedup.everyPod" -}}
{{- if .Values.keepers.enabled -}}
matchLabels:
  {{- omit (include "kdedup.selectorLabels" . | fromYaml) "app.kubernetes.io/component" | toYaml | nindent 2 }}
matchExpressions:
  - {key: app.kubernetes.io/component, operator: In, values: [pipeline, keepers]}
{{- else -}}
matchLabels:
  {{- include "kdedup.selectorLabels" . | nindent 2 }}
{{- end -}}
{{- end -}}

{{/* The setup runs before the release's own service account is there, so it has one of its own. */}}
{{- define "kdedup.setupAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- include "kdedup.fullname" . }}-setup
{{- else -}}
{{- include "kdedup.serviceAccountName" . -}}
{{- end -}}
{{- end -}}

{{- define "kdedup.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "kdedup.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* A release tags its image with a v, see .goreleaser.yaml. */}}
{{- define "kdedup.tag" -}}
{{- .Values.image.tag | default (printf "v%s" .Chart.AppVersion) -}}
{{- end -}}

{{- define "kdedup.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (include "kdedup.tag" .) -}}
{{- end -}}
{{- end -}}
