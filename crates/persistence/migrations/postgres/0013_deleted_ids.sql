-- True once the request ids and reservations of a closed period are deleted, so that retention
-- finds the periods that still have some without reading those that do not.
ALTER TABLE quota.quota_usages ADD COLUMN ids_deleted boolean NOT NULL DEFAULT false;

CREATE INDEX quota_usages_with_ids ON quota.quota_usages (period_end)
    WHERE closed_at IS NOT NULL AND NOT ids_deleted;
