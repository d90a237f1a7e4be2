-- Units that are set aside before their use is known. `used` of a usage includes those that are
-- reserved, so that a release without reservations never passes the limit, either.
ALTER TABLE quota_usages ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0 CHECK (reserved >= 0);
ALTER TABLE quota_usages ADD COLUMN resets INTEGER NOT NULL DEFAULT 0;

-- `refunded` is what came back of a charge, once.
ALTER TABLE quota_increments ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
ALTER TABLE quota_increments ADD COLUMN resets INTEGER NOT NULL DEFAULT 0;
ALTER TABLE quota_increments ADD COLUMN refunded INTEGER;

CREATE TABLE quota_reservations (
    policy_id        TEXT NOT NULL,
    period_name      TEXT NOT NULL,
    id               TEXT NOT NULL,
    request_id       TEXT,
    amount           INTEGER NOT NULL CHECK (amount > 0),
    held             INTEGER NOT NULL CHECK (held >= 0),
    charged          INTEGER NOT NULL CHECK (charged >= 0),
    returned         INTEGER NOT NULL CHECK (returned >= 0),
    owed             INTEGER NOT NULL CHECK (owed >= 0),
    status           TEXT NOT NULL
        CHECK (status IN ('pending', 'settled', 'cancelled', 'expired')),
    metered          INTEGER NOT NULL CHECK (metered IN (0, 1)),
    ttl_seconds      INTEGER NOT NULL,
    expires_at       INTEGER NOT NULL,
    created_at       INTEGER NOT NULL,
    use_request_id   TEXT,
    use_amount       INTEGER,
    use_charged      INTEGER,
    use_owed         INTEGER,
    use_stop         INTEGER CHECK (use_stop IN (0, 1)),
    settle_amount    INTEGER,
    settle_overdraft INTEGER CHECK (settle_overdraft IN (0, 1)),
    PRIMARY KEY (policy_id, period_name, id),
    UNIQUE (policy_id, period_name, request_id)
) STRICT;

CREATE INDEX quota_reservations_due ON quota_reservations (policy_id, period_name, expires_at)
    WHERE status = 'pending';
CREATE INDEX quota_reservations_expiry ON quota_reservations (expires_at)
    WHERE status = 'pending';
