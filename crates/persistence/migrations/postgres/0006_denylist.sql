-- Who is denied by the operator's word. Every change moves the revision on, so that services notice it.
CREATE TABLE cn_admin.denylist (
    subject    varchar(64) PRIMARY KEY,
    reason     text NOT NULL,
    expires_at timestamptz,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL
);

INSERT INTO revisions (name, revision) VALUES ('denylist', 0);
