-- Part of a rule's limit that a server takes in advance; 0 percent is none, NULL the default.
ALTER TABLE ratelimit.rate_limit_rules
    ADD COLUMN lease_share_percent bigint CHECK (lease_share_percent BETWEEN 0 AND 50),
    ADD COLUMN lease_hold_ms bigint CHECK (lease_hold_ms BETWEEN 0 AND 1000);
