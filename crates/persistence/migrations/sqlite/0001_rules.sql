-- Ids are text, times are microseconds since the Unix epoch.

CREATE TABLE rate_limit_rules (
    id                 TEXT NOT NULL PRIMARY KEY,
    name               TEXT,
    scope              TEXT NOT NULL CHECK (scope IN ('service', 'user', 'endpoint')),
    identifier_pattern TEXT NOT NULL,
    limit_count        INTEGER NOT NULL CHECK (limit_count > 0),
    window_secs        INTEGER NOT NULL CHECK (window_secs > 0),
    algorithm          TEXT NOT NULL CHECK (algorithm IN (
        'token_bucket', 'sliding_window', 'sliding_window_counter', 'fixed_window', 'leaky_bucket'
    )),
    burst              INTEGER CHECK (burst > 0),
    fail_mode          TEXT CHECK (fail_mode IN ('open', 'closed', 'local')),
    enabled            INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    CONSTRAINT rate_limit_rules_identity UNIQUE (scope, identifier_pattern, window_secs)
) STRICT;

CREATE INDEX rate_limit_rules_newest ON rate_limit_rules (created_at DESC, id);

-- One row for each set of things that others hold a copy of.
CREATE TABLE revisions (
    name     TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL
) STRICT;

INSERT INTO revisions (name, revision) VALUES ('rate_limit_rules', 0);

CREATE TABLE audit_log (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    occurred_at  INTEGER NOT NULL,
    actor        TEXT NOT NULL,
    request_id   TEXT NOT NULL,
    action       TEXT NOT NULL,
    target       TEXT NOT NULL,
    before_state TEXT,
    after_state  TEXT,
    reason       TEXT
) STRICT;

CREATE INDEX audit_log_occurred_at ON audit_log (occurred_at);
CREATE INDEX audit_log_actor ON audit_log (actor, id);
CREATE INDEX audit_log_target ON audit_log (target, id);
