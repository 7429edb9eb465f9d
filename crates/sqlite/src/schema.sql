-- Each row has a checksum of its other columns; columns that change by themselves have one of their own.

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
    crash_count INTEGER NOT NULL DEFAULT 0,
    stuck_cause INTEGER,
    stuck_subject TEXT,
    stuck_reason TEXT,
    stuck_since INTEGER,
    stuck_attempts INTEGER,
    stuck_retry INTEGER,
    memo BLOB NOT NULL,
    published BLOB,
    result BLOB,
    identity_sum INTEGER NOT NULL DEFAULT 0,
    progress_sum INTEGER NOT NULL DEFAULT 0,
    stuck_sum INTEGER,
    memo_sum INTEGER NOT NULL DEFAULT 0,
    published_sum INTEGER,
    result_sum INTEGER
) STRICT;
CREATE UNIQUE INDEX runs_run_id ON runs (run_id);
CREATE INDEX runs_workflow_id ON runs (workflow_id);
CREATE UNIQUE INDEX runs_open ON runs (workflow_id) WHERE status = 0;
CREATE UNIQUE INDEX runs_request ON runs (request) WHERE request IS NOT NULL;
CREATE INDEX runs_open_no ON runs (no) WHERE status = 0;
CREATE INDEX runs_workflow ON runs (workflow);
CREATE INDEX runs_started ON runs (started);
-- Those that did not end with a result.
CREATE INDEX runs_ended ON runs (status) WHERE status > 1;
CREATE INDEX runs_closed ON runs (closed) WHERE closed IS NOT NULL;
CREATE INDEX runs_stuck ON runs (no) WHERE stuck_cause IS NOT NULL;
CREATE INDEX runs_crash_count ON runs (crash_count) WHERE crash_count > 0;
CREATE INDEX runs_children ON runs (parent) WHERE parent IS NOT NULL AND status = 0;

CREATE TABLE turns (
    no INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    record BLOB NOT NULL,
    sum INTEGER NOT NULL
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
    crash_count INTEGER NOT NULL,
    holder INTEGER,
    external INTEGER,
    failure BLOB,
    details BLOB,
    sum INTEGER NOT NULL,
    attempt_sum INTEGER NOT NULL
) STRICT;
CREATE INDEX tasks_run ON tasks (run, seq);

CREATE TABLE timers (
    due INTEGER NOT NULL,
    run INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (due, run, kind, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE messages (
    no INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    key TEXT NOT NULL,
    sent INTEGER NOT NULL,
    job BLOB NOT NULL,
    taken INTEGER,
    outcome BLOB,
    chain TEXT,
    sum INTEGER NOT NULL,
    taken_sum INTEGER,
    outcome_sum INTEGER
) STRICT;
CREATE UNIQUE INDEX messages_key ON messages (run, key);
CREATE INDEX messages_unseen ON messages (run) WHERE taken IS NULL;
CREATE INDEX messages_chain ON messages (chain, key) WHERE chain IS NOT NULL;

-- A search attribute is one row, a list of keywords one row for each keyword. One of text, number and real is the value.
CREATE TABLE attributes (
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    place INTEGER NOT NULL,
    count INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    text TEXT,
    number INTEGER,
    real REAL,
    sum INTEGER NOT NULL,
    PRIMARY KEY (run, name, place)
) STRICT, WITHOUT ROWID;

CREATE INDEX attributes_text ON attributes (name, text, run) WHERE text IS NOT NULL;
CREATE INDEX attributes_number ON attributes (name, kind, number, run) WHERE number IS NOT NULL;
CREATE INDEX attributes_real ON attributes (name, kind, real, run) WHERE real IS NOT NULL;

-- Deleted runs whose turns and messages are yet to be removed.
CREATE TABLE garbage (
    run INTEGER PRIMARY KEY,
    sum INTEGER NOT NULL
) STRICT;

CREATE TABLE numbers (
    next INTEGER NOT NULL,
    store BLOB NOT NULL,
    commits INTEGER NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
INSERT INTO numbers VALUES (1, randomblob(16), 0, 0);
