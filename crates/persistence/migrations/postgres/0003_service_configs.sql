-- One document for each service. Whoever writes one moves its version on.
CREATE TABLE cn_admin.service_configs (
    service     varchar(64) PRIMARY KEY,
    version     bigint NOT NULL,
    config_json jsonb NOT NULL,
    updated_at  timestamptz NOT NULL,
    updated_by  text NOT NULL,
    CONSTRAINT service_configs_version CHECK (version > 0)
);

CREATE TABLE cn_admin.audit_logs (
    audit_id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    actor_admin_user_id text NOT NULL,
    action              varchar(64) NOT NULL,
    target              varchar(128) NOT NULL,
    diff_json           jsonb NOT NULL,
    request_id          text NOT NULL,
    created_at          timestamptz NOT NULL
);

CREATE INDEX audit_logs_target ON cn_admin.audit_logs (target, audit_id);
CREATE INDEX audit_logs_created_at ON cn_admin.audit_logs (created_at);

-- What running services run on. A version that is missing stands for safe defaults.
CREATE TABLE cn_admin.service_states (
    service  varchar(64) NOT NULL,
    instance varchar(64) NOT NULL,
    version  bigint,
    source   varchar(32) NOT NULL,
    seen_at  timestamptz NOT NULL,
    PRIMARY KEY (service, instance)
);

CREATE INDEX service_states_seen_at ON cn_admin.service_states (seen_at);
