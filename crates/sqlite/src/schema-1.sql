CREATE TABLE runs (
    no INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    workflow TEXT NOT NULL,
    queue TEXT NOT NULL,
    status INTEGER NOT NULL,
    started INTEGER NOT NULL,
    closed INTEGER,
    turns INTEGER NOT NULL,
    owner INTEGER,
    epoch INTEGER NOT NULL,
    pins BLOB NOT NULL,
    parent INTEGER,
    parent_seq INTEGER,
    parent_close INTEGER,
    first_run_id TEXT NOT NULL,
    request TEXT,
    stuck_reason TEXT,
    stuck_since INTEGER,
    stuck_attempts INTEGER,
    stuck_retry INTEGER,
    memo BLOB NOT NULL,
    published BLOB,
    result BLOB
) STRICT;
CREATE UNIQUE INDEX runs_run_id ON runs (run_id);
CREATE INDEX runs_workflow_id ON runs (workflow_id);
CREATE UNIQUE INDEX runs_open ON runs (workflow_id) WHERE status = 0;
CREATE UNIQUE INDEX runs_request ON runs (request) WHERE request IS NOT NULL;
CREATE INDEX runs_open_no ON runs (no) WHERE status = 0;
CREATE INDEX runs_stuck ON runs (no) WHERE stuck_reason IS NOT NULL;
CREATE INDEX runs_children ON runs (parent) WHERE parent IS NOT NULL AND status = 0;

CREATE TABLE turns (
    no INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    record BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX turns_run ON turns (run, turn);

CREATE TABLE tasks (
    no INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    queue TEXT NOT NULL,
    ready INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    position INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    strikes INTEGER NOT NULL,
    holder INTEGER,
    failure BLOB,
    details BLOB
) STRICT;

CREATE INDEX tasks_run ON tasks (run, seq);

CREATE TABLE timers (
    due INTEGER NOT NULL,
    run INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (due, run, kind, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE mail (
    no INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    key TEXT NOT NULL,
    sent INTEGER NOT NULL,
    job BLOB NOT NULL,
    taken INTEGER,
    outcome BLOB
) STRICT;
CREATE UNIQUE INDEX mail_key ON mail (run, key);
CREATE INDEX mail_unseen ON mail (run) WHERE taken IS NULL;

CREATE TABLE attributes (
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;
