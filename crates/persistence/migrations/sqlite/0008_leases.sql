-- Part of a rule's limit that a server takes in advance; 0 percent is none, NULL the default.
ALTER TABLE rate_limit_rules
    ADD COLUMN lease_share_percent INTEGER CHECK (lease_share_percent BETWEEN 0 AND 50);
ALTER TABLE rate_limit_rules
    ADD COLUMN lease_hold_ms INTEGER CHECK (lease_hold_ms BETWEEN 0 AND 1000);
