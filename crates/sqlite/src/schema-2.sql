CREATE INDEX runs_closed ON runs (closed) WHERE closed IS NOT NULL;
CREATE TABLE garbage (
    run INTEGER PRIMARY KEY
) STRICT;
ALTER TABLE tasks ADD COLUMN outside INTEGER;
