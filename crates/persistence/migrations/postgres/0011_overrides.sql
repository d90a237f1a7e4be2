-- Other limits for single subjects of a rule. They are deleted with their rule by the program: a
-- server of an older version does not know them, and leaves them behind, unused.
CREATE TABLE ratelimit.rate_limit_overrides (
    id          uuid PRIMARY KEY,
    rule_id     uuid NOT NULL,
    subject     text NOT NULL,
    limit_count bigint NOT NULL CHECK (limit_count > 0),
    ends_at     timestamptz,
    reason      text,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz NOT NULL,
    CONSTRAINT rate_limit_overrides_identity UNIQUE (rule_id, subject)
);
CREATE INDEX rate_limit_overrides_newest ON ratelimit.rate_limit_overrides (created_at DESC, id);
CREATE INDEX rate_limit_overrides_ended ON ratelimit.rate_limit_overrides (ends_at);

-- The overrides that each of the latest revisions of the rules changed, made or deleted.
CREATE TABLE ratelimit.rate_limit_override_changes (
    revision    bigint NOT NULL,
    override_id uuid NOT NULL,
    PRIMARY KEY (revision, override_id)
);
