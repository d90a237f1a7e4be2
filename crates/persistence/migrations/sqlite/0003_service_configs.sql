-- One document for each service. Whoever writes one moves its version on.
CREATE TABLE service_configs (
    service     TEXT NOT NULL PRIMARY KEY,
    version     INTEGER NOT NULL CHECK (version > 0),
    config_json TEXT NOT NULL,
    updated_at  INTEGER NOT NULL,
    updated_by  TEXT NOT NULL
) STRICT;

CREATE TABLE audit_logs (
    audit_id            INTEGER PRIMARY KEY AUTOINCREMENT,
    actor_admin_user_id TEXT NOT NULL,
    action              TEXT NOT NULL,
    target              TEXT NOT NULL,
    diff_json           TEXT NOT NULL,
    request_id          TEXT NOT NULL,
    created_at          INTEGER NOT NULL
) STRICT;

CREATE INDEX audit_logs_target ON audit_logs (target, audit_id);
CREATE INDEX audit_logs_created_at ON audit_logs (created_at);

-- What running services run on. A version that is missing stands for safe defaults.
CREATE TABLE service_states (
    service  TEXT NOT NULL,
    instance TEXT NOT NULL,
    version  INTEGER,
    source   TEXT NOT NULL,
    seen_at  INTEGER NOT NULL,
    PRIMARY KEY (service, instance)
) STRICT;

CREATE INDEX service_states_seen_at ON service_states (seen_at);
