-- The rules that each revision changed, made or deleted, for the latest revisions. A revision that
-- is not listed changed something that nobody wrote down here.
CREATE TABLE ratelimit.rate_limit_rule_changes (
    revision bigint NOT NULL,
    rule_id  uuid NOT NULL,
    PRIMARY KEY (revision, rule_id)
);

-- The policies that each of the latest revisions deleted.
CREATE TABLE quota.quota_policy_deletions (
    revision  bigint NOT NULL,
    policy_id text NOT NULL,
    PRIMARY KEY (revision, policy_id)
);
