-- Tables without a schema are made in the configured one: it stands first in the search path.

CREATE TABLE ratelimit.rate_limit_rules (
    id                 uuid PRIMARY KEY,
    name               varchar(255),
    scope              varchar(50) NOT NULL,
    identifier_pattern varchar(255) NOT NULL,
    limit_count        bigint NOT NULL,
    window_secs        bigint NOT NULL,
    algorithm          varchar(50) NOT NULL,
    burst              bigint,
    fail_mode          varchar(50),
    enabled            boolean NOT NULL DEFAULT true,
    created_at         timestamptz NOT NULL DEFAULT now(),
    updated_at         timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT rate_limit_rules_identity UNIQUE (scope, identifier_pattern, window_secs),
    CONSTRAINT rate_limit_rules_scope CHECK (scope IN ('service', 'user', 'endpoint')),
    CONSTRAINT rate_limit_rules_limit CHECK (limit_count > 0),
    CONSTRAINT rate_limit_rules_window CHECK (window_secs > 0),
    CONSTRAINT rate_limit_rules_burst CHECK (burst > 0),
    CONSTRAINT rate_limit_rules_algorithm CHECK (algorithm IN (
        'token_bucket', 'sliding_window', 'sliding_window_counter', 'fixed_window', 'leaky_bucket'
    )),
    CONSTRAINT rate_limit_rules_fail_mode CHECK (fail_mode IN ('open', 'closed', 'local'))
);

CREATE INDEX rate_limit_rules_newest ON ratelimit.rate_limit_rules (created_at DESC, id);

-- One row for each set of things that others hold a copy of.
CREATE TABLE revisions (
    name     varchar(50) PRIMARY KEY,
    revision bigint NOT NULL
);

INSERT INTO revisions (name, revision) VALUES ('rate_limit_rules', 0);

CREATE TABLE audit_log (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    occurred_at  timestamptz NOT NULL,
    actor        text NOT NULL,
    request_id   text NOT NULL,
    action       varchar(50) NOT NULL,
    target       text NOT NULL,
    before_state text,
    after_state  text,
    reason       text
);

CREATE INDEX audit_log_occurred_at ON audit_log (occurred_at);
CREATE INDEX audit_log_actor ON audit_log (actor, id);
CREATE INDEX audit_log_target ON audit_log (target, id);
