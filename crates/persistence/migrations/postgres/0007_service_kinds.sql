-- Kinds of documents that services have registered, by which other programs validate them.
CREATE TABLE cn_admin.service_kinds (
    service       varchar(64) PRIMARY KEY,
    revision      bigint NOT NULL,
    schema_json   jsonb NOT NULL,
    registered_at timestamptz NOT NULL
);
