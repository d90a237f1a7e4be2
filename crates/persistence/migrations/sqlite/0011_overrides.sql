-- Other limits for single subjects of a rule. They are deleted with their rule by the program: a
-- server of an older version does not know them, and leaves them behind, unused.
CREATE TABLE rate_limit_overrides (
    id          TEXT NOT NULL PRIMARY KEY,
    rule_id     TEXT NOT NULL,
    subject     TEXT NOT NULL,
    limit_count INTEGER NOT NULL CHECK (limit_count > 0),
    ends_at     INTEGER,
    reason      TEXT,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    CONSTRAINT rate_limit_overrides_identity UNIQUE (rule_id, subject)
) STRICT;
CREATE INDEX rate_limit_overrides_newest ON rate_limit_overrides (created_at DESC, id);
CREATE INDEX rate_limit_overrides_ended ON rate_limit_overrides (ends_at);

-- The overrides that each of the latest revisions of the rules changed, made or deleted.
CREATE TABLE rate_limit_override_changes (
    revision    INTEGER NOT NULL,
    override_id TEXT NOT NULL,
    PRIMARY KEY (revision, override_id)
) STRICT, WITHOUT ROWID;
