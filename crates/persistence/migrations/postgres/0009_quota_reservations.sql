-- Units that are set aside before their use is known. `used` of a usage includes those that are
-- reserved, so that a release without reservations never passes the limit, either.
ALTER TABLE quota.quota_usages
    ADD COLUMN reserved bigint NOT NULL DEFAULT 0,
    ADD COLUMN resets bigint NOT NULL DEFAULT 0,
    ADD CONSTRAINT quota_usages_reserved CHECK (reserved >= 0);

-- `refunded` is what came back of a charge, once.
ALTER TABLE quota.quota_increments
    ADD COLUMN reserved bigint NOT NULL DEFAULT 0,
    ADD COLUMN resets bigint NOT NULL DEFAULT 0,
    ADD COLUMN refunded bigint;

-- All changes of a row happen under the lock of its period's row in quota_usages.
CREATE TABLE quota.quota_reservations (
    policy_id        varchar(64) NOT NULL,
    period_name      varchar(10) NOT NULL,
    id               varchar(64) NOT NULL,
    request_id       varchar(128),
    amount           bigint NOT NULL,
    held             bigint NOT NULL,
    charged          bigint NOT NULL,
    returned         bigint NOT NULL,
    owed             bigint NOT NULL,
    status           varchar(16) NOT NULL,
    metered          boolean NOT NULL,
    ttl_seconds      bigint NOT NULL,
    expires_at       timestamptz NOT NULL,
    created_at       timestamptz NOT NULL,
    use_request_id   varchar(128),
    use_amount       bigint,
    use_charged      bigint,
    use_owed         bigint,
    use_stop         boolean,
    settle_amount    bigint,
    settle_overdraft boolean,
    PRIMARY KEY (policy_id, period_name, id),
    CONSTRAINT quota_reservations_request UNIQUE (policy_id, period_name, request_id),
    CONSTRAINT quota_reservations_amount CHECK (amount > 0),
    CONSTRAINT quota_reservations_units
        CHECK (held >= 0 AND charged >= 0 AND returned >= 0 AND owed >= 0),
    CONSTRAINT quota_reservations_status
        CHECK (status IN ('pending', 'settled', 'cancelled', 'expired'))
);

CREATE INDEX quota_reservations_due ON quota.quota_reservations (policy_id, period_name, expires_at)
    WHERE status = 'pending';
CREATE INDEX quota_reservations_expiry ON quota.quota_reservations (expires_at)
    WHERE status = 'pending';
