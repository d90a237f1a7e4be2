-- Who is denied by the operator's word. Every change moves the revision on, so that services notice it.
CREATE TABLE denylist (
    subject    TEXT NOT NULL PRIMARY KEY,
    reason     TEXT NOT NULL,
    expires_at INTEGER,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO revisions (name, revision) VALUES ('denylist', 0);
