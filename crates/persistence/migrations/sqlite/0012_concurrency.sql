-- A rule may say algorithm: concurrency.
-- SQLite changes no constraint of a table, so it is made anew.
CREATE TABLE rate_limit_rules_concurrency (
    id                  TEXT NOT NULL PRIMARY KEY,
    name                TEXT,
    scope               TEXT NOT NULL CHECK (scope IN ('service', 'user', 'endpoint', 'attributes')),
    identifier_pattern  TEXT NOT NULL,
    limit_count         INTEGER NOT NULL CHECK (limit_count > 0),
    window_secs         INTEGER NOT NULL CHECK (window_secs > 0),
    algorithm           TEXT NOT NULL CHECK (algorithm IN (
        'token_bucket', 'sliding_window', 'sliding_window_counter', 'fixed_window', 'leaky_bucket',
        'concurrency'
    )),
    burst               INTEGER CHECK (burst > 0),
    fail_mode           TEXT CHECK (fail_mode IN ('capped', 'open', 'closed', 'local')),
    enabled             INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    lease_share_percent INTEGER CHECK (lease_share_percent BETWEEN 0 AND 50),
    lease_hold_ms       INTEGER CHECK (lease_hold_ms BETWEEN 0 AND 1000),
    selector            TEXT,
    CONSTRAINT rate_limit_rules_identity UNIQUE (scope, identifier_pattern, window_secs)
) STRICT;

INSERT INTO rate_limit_rules_concurrency (id, name, scope, identifier_pattern, limit_count,
    window_secs, algorithm, burst, fail_mode, enabled, created_at, updated_at, lease_share_percent,
    lease_hold_ms, selector)
SELECT id, name, scope, identifier_pattern, limit_count,
    window_secs, algorithm, burst, fail_mode, enabled, created_at, updated_at, lease_share_percent,
    lease_hold_ms, selector
FROM rate_limit_rules ORDER BY rowid;

DROP TABLE rate_limit_rules;
ALTER TABLE rate_limit_rules_concurrency RENAME TO rate_limit_rules;
CREATE INDEX rate_limit_rules_newest ON rate_limit_rules (created_at DESC, id);
