-- Each policy has the revision of the set that its last change made.
CREATE TABLE quota_policies (
    id                      TEXT NOT NULL PRIMARY KEY,
    name                    TEXT NOT NULL,
    subject_type            TEXT NOT NULL CHECK (subject_type IN ('tenant', 'user', 'api_key')),
    subject_id              TEXT NOT NULL,
    quota_limit             INTEGER NOT NULL CHECK (quota_limit BETWEEN 1 AND 9007199254740992),
    period                  TEXT NOT NULL CHECK (period IN ('daily', 'monthly')),
    time_zone               TEXT,
    enabled                 INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
    alert_threshold_percent INTEGER CHECK (alert_threshold_percent BETWEEN 0 AND 100),
    created_at              INTEGER NOT NULL,
    updated_at              INTEGER NOT NULL,
    revision                INTEGER NOT NULL,
    CONSTRAINT quota_policies_identity UNIQUE (subject_type, subject_id, period)
) STRICT;

CREATE INDEX quota_policies_newest ON quota_policies (created_at DESC, id);
CREATE INDEX quota_policies_revision ON quota_policies (revision);
CREATE INDEX quota_policies_subject ON quota_policies (subject_id);

-- One row for each period in which a policy was used. It outlives the policy, so that history
-- stays.
CREATE TABLE quota_usages (
    policy_id      TEXT NOT NULL,
    period_name    TEXT NOT NULL,
    period_start   INTEGER NOT NULL,
    period_end     INTEGER NOT NULL,
    quota_limit    INTEGER NOT NULL,
    used           INTEGER NOT NULL CHECK (used BETWEEN 0 AND 9007199254740992),
    threshold_told INTEGER NOT NULL DEFAULT 0 CHECK (threshold_told IN (0, 1)),
    exceeded_told  INTEGER NOT NULL DEFAULT 0 CHECK (exceeded_told IN (0, 1)),
    closed_at      INTEGER,
    updated_at     INTEGER NOT NULL,
    PRIMARY KEY (policy_id, period_name),
    CHECK (period_start < period_end)
) STRICT;

CREATE INDEX quota_usages_open ON quota_usages (period_end) WHERE closed_at IS NULL;
CREATE INDEX quota_usages_closed ON quota_usages (period_end) WHERE closed_at IS NOT NULL;

-- What was taken under which request id, so that nothing is charged twice.
CREATE TABLE quota_increments (
    policy_id   TEXT NOT NULL,
    period_name TEXT NOT NULL,
    request_id  TEXT NOT NULL,
    amount      INTEGER NOT NULL CHECK (amount > 0),
    used        INTEGER NOT NULL,
    quota_limit INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    PRIMARY KEY (policy_id, period_name, request_id)
) STRICT;

-- Each kind once in a policy's period.
CREATE TABLE quota_events (
    seq                     INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id                TEXT NOT NULL UNIQUE,
    kind                    TEXT NOT NULL
        CHECK (kind IN ('QUOTA_EXCEEDED', 'QUOTA_THRESHOLD_REACHED')),
    policy_id               TEXT NOT NULL,
    subject_type            TEXT NOT NULL,
    subject_id              TEXT NOT NULL,
    period                  TEXT NOT NULL,
    quota_limit             INTEGER NOT NULL,
    used                    INTEGER NOT NULL,
    alert_threshold_percent INTEGER,
    occurred_at             INTEGER NOT NULL,
    reset_at                INTEGER NOT NULL
) STRICT;

CREATE INDEX quota_events_occurred_at ON quota_events (occurred_at);

CREATE TABLE quota_deliveries (
    sink         TEXT NOT NULL,
    event_id     TEXT NOT NULL REFERENCES quota_events (event_id) ON DELETE CASCADE,
    delivered_at INTEGER NOT NULL,
    PRIMARY KEY (event_id, sink)
) STRICT;

-- Up to which place each sink has everything, so that nobody looks at what is done.
CREATE TABLE quota_sinks (
    sink              TEXT NOT NULL PRIMARY KEY,
    delivered_through INTEGER NOT NULL
) STRICT;

INSERT INTO revisions (name, revision) VALUES ('quota_policies', 0);
