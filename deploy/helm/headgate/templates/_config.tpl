{{- /* The server's configuration: defaults of the chart, overridden by `config`, and paths of secrets. */}}
{{- define "headgate.config" -}}
{{- $own := dict
  "app" (dict "name" (include "headgate.name" .) "version" .Chart.AppVersion)
  "server" (dict "host" "0.0.0.0" "port" .Values.container.port "grpc_port" .Values.container.grpcPort "data_dir" "/data" "shutdown_delay_seconds" 5 "shutdown_grace_seconds" 5 "shutdown_timeout_seconds" 10)
  "ratelimit" (dict "replicas" (ternary .Values.autoscaling.maxReplicas .Values.replicaCount .Values.autoscaling.enabled))
}}
{{- if .Values.tls.secretName }}
{{- $tls := dict "certificates" (list (dict "cert_file" "/etc/headgate/tls/tls.crt" "key_file" "/etc/headgate/tls/tls.key")) }}
{{- if eq .Values.tls.clientCertificates "optional" }}
{{- $tls = merge $tls (dict "client_ca_file" "/etc/headgate/tls/ca.crt" "client_certificates" "optional") }}
{{- end }}
{{- $_ := set $own.server "tls" $tls }}
{{- end }}
{{- $config := mergeOverwrite $own (deepCopy .Values.config) }}
{{- if .Values.redis.enabled }}
{{- $url := required "redis.url is required, such as redis://redis:6379" .Values.redis.url }}
{{- $_ := set $config "redis" (mergeOverwrite (dict "url" $url) (default dict $config.redis)) }}
{{- end }}
{{- if .Values.kafka.enabled }}
{{- if not .Values.kafka.brokers }}{{ fail "kafka.brokers is required, such as [kafka-0.kafka:9092]" }}{{ end }}
{{- $_ := set $config "kafka" (mergeOverwrite (dict "brokers" .Values.kafka.brokers) (default dict $config.kafka)) }}
{{- end }}
{{- $files := list }}
{{- if .Values.vault.enabled }}
{{- range .Values.vault.secrets }}
{{- $files = append $files (dict "configKey" .configKey "path" .mountPath) }}
{{- end }}
{{- end }}
{{- range .Values.existingSecrets }}
{{- $files = append $files (dict "configKey" .configKey "path" (include "headgate.secretFile" .)) }}
{{- end }}
{{- range $files }}
{{- if .configKey }}
{{- $section := first (splitList "." .configKey) }}
{{- $key := last (splitList "." .configKey) }}
{{- $_ := set $config $section (mergeOverwrite (default dict (get $config $section)) (dict $key .path)) }}
{{- end }}
{{- end }}
{{- $auth := default dict $config.auth }}
{{- if not (or $auth.jwks_url $auth.tokens $auth.client_certificates $auth.mode) }}
{{- fail "config.auth is required: set auth.jwks_url (a token issuer), auth.tokens, auth.client_certificates, or auth.mode: 'off' in quotes" }}
{{- end }}
{{- $server := $config.server }}
{{- $stopping := add $server.shutdown_delay_seconds $server.shutdown_grace_seconds $server.shutdown_timeout_seconds }}
{{- if le (int .Values.terminationGracePeriodSeconds) (int $stopping) }}
{{- fail (printf "terminationGracePeriodSeconds must be more than %d, the sum of config.server.shutdown_delay_seconds, shutdown_grace_seconds and shutdown_timeout_seconds" (int $stopping)) }}
{{- end }}
{{- toYaml $config }}
{{- end }}
