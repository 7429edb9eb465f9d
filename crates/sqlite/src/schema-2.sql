CREATE INDEX runs_closed ON runs (closed) WHERE closed IS NOT NULL;
CREATE TABLE garbage (
    run INTEGER PRIMARY KEY
) STRICT;
ALTER TABLE tasks ADD COLUMN outside INTEGER;
CREATE TABLE numbers (
    next INTEGER NOT NULL
) STRICT;
INSERT INTO numbers SELECT 1 + max(
    coalesce((SELECT max(no) FROM runs), 0),
    coalesce((SELECT max(no) FROM tasks), 0),
    coalesce((SELECT max(no) FROM mail), 0)
);
