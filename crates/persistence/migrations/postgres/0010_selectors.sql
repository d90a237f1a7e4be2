-- A rule may be over attributes: its conditions are JSON, and its identifier_pattern is its name.
ALTER TABLE ratelimit.rate_limit_rules ADD COLUMN selector text;
ALTER TABLE ratelimit.rate_limit_rules DROP CONSTRAINT IF EXISTS rate_limit_rules_scope;
ALTER TABLE ratelimit.rate_limit_rules ADD CONSTRAINT rate_limit_rules_scope
    CHECK (scope IN ('service', 'user', 'endpoint', 'attributes'));
