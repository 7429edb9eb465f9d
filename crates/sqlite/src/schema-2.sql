CREATE INDEX runs_closed ON runs (closed) WHERE closed IS NOT NULL;
CREATE TABLE garbage (
    run INTEGER PRIMARY KEY
) STRICT;
ALTER TABLE tasks ADD COLUMN outside INTEGER;
ALTER TABLE runs ADD COLUMN strikes INTEGER NOT NULL DEFAULT 0;
CREATE INDEX runs_struck ON runs (strikes) WHERE strikes > 0;
ALTER TABLE mail ADD COLUMN chain TEXT;
UPDATE mail SET chain = (SELECT first_run_id FROM runs WHERE runs.no = mail.run)
    WHERE key LIKE 'signal:%' OR key LIKE 'update:%';
CREATE INDEX mail_chain ON mail (chain, key) WHERE chain IS NOT NULL;
CREATE TABLE numbers (
    next INTEGER NOT NULL
) STRICT;
INSERT INTO numbers SELECT 1 + max(
    coalesce((SELECT max(no) FROM runs), 0),
    coalesce((SELECT max(no) FROM tasks), 0),
    coalesce((SELECT max(no) FROM mail), 0)
);
