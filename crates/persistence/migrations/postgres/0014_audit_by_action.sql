-- Finds the entries of one action, newest first, without reading those of others.
CREATE INDEX audit_log_action ON audit_log (action, id);
