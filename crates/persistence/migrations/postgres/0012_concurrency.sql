-- A rule may say algorithm: concurrency.
ALTER TABLE ratelimit.rate_limit_rules DROP CONSTRAINT IF EXISTS rate_limit_rules_algorithm;
ALTER TABLE ratelimit.rate_limit_rules ADD CONSTRAINT rate_limit_rules_algorithm
    CHECK (algorithm IN (
        'token_bucket', 'sliding_window', 'sliding_window_counter', 'fixed_window', 'leaky_bucket',
        'concurrency'
    ));
