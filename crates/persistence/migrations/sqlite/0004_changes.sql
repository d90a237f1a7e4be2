-- The rules that each revision changed, made or deleted, for the latest revisions. A revision that
-- is not listed changed something that nobody wrote down here.
CREATE TABLE rate_limit_rule_changes (
    revision INTEGER NOT NULL,
    rule_id  TEXT NOT NULL,
    PRIMARY KEY (revision, rule_id)
) STRICT, WITHOUT ROWID;

-- The policies that each of the latest revisions deleted.
CREATE TABLE quota_policy_deletions (
    revision  INTEGER NOT NULL,
    policy_id TEXT NOT NULL,
    PRIMARY KEY (revision, policy_id)
) STRICT, WITHOUT ROWID;
