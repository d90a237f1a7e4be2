-- Kinds of documents that services have registered, by which other programs validate them.
CREATE TABLE service_kinds (
    service       TEXT NOT NULL PRIMARY KEY,
    revision      INTEGER NOT NULL,
    schema_json   TEXT NOT NULL,
    registered_at INTEGER NOT NULL
) STRICT;
