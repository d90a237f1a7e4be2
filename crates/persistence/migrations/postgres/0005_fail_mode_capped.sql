-- A rule may say fail_mode: capped.
ALTER TABLE ratelimit.rate_limit_rules DROP CONSTRAINT IF EXISTS rate_limit_rules_fail_mode;
ALTER TABLE ratelimit.rate_limit_rules ADD CONSTRAINT rate_limit_rules_fail_mode
    CHECK (fail_mode IN ('capped', 'open', 'closed', 'local'));
