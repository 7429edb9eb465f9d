CREATE INDEX runs_closed ON runs (closed) WHERE closed IS NOT NULL;
CREATE TABLE garbage (
    run INTEGER PRIMARY KEY
) STRICT;
ALTER TABLE tasks ADD COLUMN outside INTEGER;
ALTER TABLE runs ADD COLUMN strikes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_struck ON runs (strikes) WHERE strikes > 0;
