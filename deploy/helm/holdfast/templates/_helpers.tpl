{{- define "holdfast.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "holdfast.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "holdfast.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "holdfast.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "holdfast.selectorLabels" -}}
app.kubernetes.io/name: {{ include "holdfast.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "holdfast.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "holdfast.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The Secret with HOLDFAST_ACCOUNTS. */}}
{{- define "holdfast.secretName" -}}
{{- if and .Values.existingSecret .Values.accounts -}}
{{- fail "give either accounts or existingSecret, not both" -}}
{{- else if .Values.existingSecret -}}
{{- .Values.existingSecret -}}
{{- else if .Values.accounts -}}
{{- include "holdfast.fullname" . }}-accounts
{{- else -}}
{{- fail "give accounts, or existingSecret with the key HOLDFAST_ACCOUNTS (docs/kubernetes.md)" -}}
{{- end -}}
{{- end -}}

{{/* NAME:KEY[:KEY2];... */}}
{{- define "holdfast.accounts" -}}
{{- $accounts := list -}}
{{- range .Values.accounts -}}
{{- $accounts = append $accounts (printf "%s:%s" .name (join ":" .keys)) -}}
{{- end -}}
{{- join ";" $accounts -}}
{{- end -}}

{{/* Where the container listens; values change only the ports of the Service. */}}
{{- define "holdfast.containerPorts" -}}
blob: 10000
queue: 10001
table: 10002
file: 10003
smb: 10445
{{- end -}}
