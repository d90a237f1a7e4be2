-- Each policy has the revision of the set that its last change made.
CREATE TABLE quota.quota_policies (
    id                      varchar(64) PRIMARY KEY,
    name                    varchar(255) NOT NULL,
    subject_type            varchar(50) NOT NULL,
    subject_id              varchar(255) NOT NULL,
    quota_limit             bigint NOT NULL,
    period                  varchar(50) NOT NULL,
    time_zone               varchar(64),
    enabled                 boolean NOT NULL DEFAULT true,
    alert_threshold_percent bigint,
    created_at              timestamptz NOT NULL DEFAULT now(),
    updated_at              timestamptz NOT NULL DEFAULT now(),
    revision                bigint NOT NULL,
    CONSTRAINT quota_policies_identity UNIQUE (subject_type, subject_id, period),
    CONSTRAINT quota_policies_subject_type CHECK (subject_type IN ('tenant', 'user', 'api_key')),
    CONSTRAINT quota_policies_limit CHECK (quota_limit BETWEEN 1 AND 9007199254740992),
    CONSTRAINT quota_policies_period CHECK (period IN ('daily', 'monthly')),
    CONSTRAINT quota_policies_threshold CHECK (alert_threshold_percent BETWEEN 0 AND 100)
);

CREATE INDEX quota_policies_newest ON quota.quota_policies (created_at DESC, id);
CREATE INDEX quota_policies_revision ON quota.quota_policies (revision);
CREATE INDEX quota_policies_subject ON quota.quota_policies (subject_id);

-- One row for each period in which a policy was used. It outlives the policy, so that history
-- stays. Nothing that is indexed changes with an increment, so that updates stay on their page.
CREATE TABLE quota.quota_usages (
    policy_id      varchar(64) NOT NULL,
    period_name    varchar(10) NOT NULL,
    period_start   timestamptz NOT NULL,
    period_end     timestamptz NOT NULL,
    quota_limit    bigint NOT NULL,
    used           bigint NOT NULL,
    threshold_told boolean NOT NULL DEFAULT false,
    exceeded_told  boolean NOT NULL DEFAULT false,
    closed_at      timestamptz,
    updated_at     timestamptz NOT NULL,
    PRIMARY KEY (policy_id, period_name),
    CONSTRAINT quota_usages_used CHECK (used BETWEEN 0 AND 9007199254740992),
    CONSTRAINT quota_usages_period CHECK (period_start < period_end)
) WITH (fillfactor = 70);

CREATE INDEX quota_usages_open ON quota.quota_usages (period_end) WHERE closed_at IS NULL;
CREATE INDEX quota_usages_closed ON quota.quota_usages (period_end) WHERE closed_at IS NOT NULL;

-- What was taken under which request id, so that nothing is charged twice.
CREATE TABLE quota.quota_increments (
    policy_id   varchar(64) NOT NULL,
    period_name varchar(10) NOT NULL,
    request_id  varchar(128) NOT NULL,
    amount      bigint NOT NULL,
    used        bigint NOT NULL,
    quota_limit bigint NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (policy_id, period_name, request_id),
    CONSTRAINT quota_increments_amount CHECK (amount > 0)
);

-- Each kind once in a policy's period.
CREATE TABLE quota.quota_events (
    seq                     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id                varchar(100) NOT NULL,
    kind                    varchar(50) NOT NULL,
    policy_id               varchar(64) NOT NULL,
    subject_type            varchar(50) NOT NULL,
    subject_id              varchar(255) NOT NULL,
    period                  varchar(50) NOT NULL,
    quota_limit             bigint NOT NULL,
    used                    bigint NOT NULL,
    alert_threshold_percent bigint,
    occurred_at             timestamptz NOT NULL,
    reset_at                timestamptz NOT NULL,
    CONSTRAINT quota_events_once UNIQUE (event_id),
    CONSTRAINT quota_events_kind CHECK (kind IN ('QUOTA_EXCEEDED', 'QUOTA_THRESHOLD_REACHED'))
);

CREATE INDEX quota_events_occurred_at ON quota.quota_events (occurred_at);

CREATE TABLE quota.quota_deliveries (
    sink         varchar(64) NOT NULL,
    event_id     varchar(100) NOT NULL REFERENCES quota.quota_events (event_id) ON DELETE CASCADE,
    delivered_at timestamptz NOT NULL,
    PRIMARY KEY (event_id, sink)
);

-- Up to which place each sink has everything, so that nobody looks at what is done.
CREATE TABLE quota.quota_sinks (
    sink              varchar(64) NOT NULL PRIMARY KEY,
    delivered_through bigint NOT NULL
);

INSERT INTO revisions (name, revision) VALUES ('quota_policies', 0);
