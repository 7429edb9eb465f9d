-- The tables of a store. Moments are nanoseconds since 1970, names and statuses are the codes of `dacapo-store`.
-- Rows that change often leave room in their pages, so that a change stays in its page and touches no index.

CREATE TABLE meta (
    version integer NOT NULL,
    store uuid NOT NULL
);

-- Numbers of runs and messages. They are drawn while the run or the workflow id is locked, so they rise in the order of the commits.
CREATE SEQUENCE numbers;
-- Numbers of tasks: a node draws blocks of them.
CREATE SEQUENCE task_blocks;

CREATE TABLE nodes (
    no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE,
    build text NOT NULL,
    queues text[] NOT NULL,
    -- Tells apart the processes that come under one name, and the incarnation the connections of one process.
    process bigint NOT NULL,
    incarnation bigint NOT NULL,
    last_group bigint NOT NULL,
    alive boolean NOT NULL,
    lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE shards (
    no smallint PRIMARY KEY,
    queue text NOT NULL,
    owner bigint
) WITH (fillfactor = 50);
CREATE INDEX shards_queue ON shards (queue);

CREATE TABLE runs (
    no bigint PRIMARY KEY,
    run_id text COLLATE "C" NOT NULL,
    workflow_id text COLLATE "C" NOT NULL,
    workflow text COLLATE "C" NOT NULL,
    queue text COLLATE "C" NOT NULL,
    status smallint NOT NULL,
    started bigint NOT NULL,
    closed bigint,
    turns bigint NOT NULL,
    owner bigint,
    epoch bigint NOT NULL,
    pins bytea NOT NULL,
    parent bigint,
    parent_seq bigint,
    parent_close smallint,
    first_run_id text NOT NULL,
    request text,
    crash_count bigint NOT NULL,
    stuck_cause smallint,
    stuck_subject text,
    stuck_reason text,
    stuck_since bigint,
    stuck_attempts bigint,
    stuck_retry bigint,
    memo bytea NOT NULL,
    published bytea,
    result bytea
) WITH (fillfactor = 60);
CREATE UNIQUE INDEX runs_run_id ON runs (run_id);
CREATE INDEX runs_workflow_id ON runs (workflow_id, no);
CREATE UNIQUE INDEX runs_open ON runs (workflow_id) WHERE status = 0;
CREATE UNIQUE INDEX runs_request ON runs (request) WHERE request IS NOT NULL;
CREATE INDEX runs_open_no ON runs (no) WHERE status = 0;
CREATE INDEX runs_workflow ON runs (workflow, no);
CREATE INDEX runs_started ON runs (started, no);
-- Those that did not end with a result.
CREATE INDEX runs_ended ON runs (status, no) WHERE status > 1;
CREATE INDEX runs_closed ON runs (closed, no) WHERE closed IS NOT NULL;
CREATE INDEX runs_stuck ON runs (no) WHERE stuck_cause IS NOT NULL;
CREATE INDEX runs_crash_count ON runs (crash_count) WHERE crash_count > 0;
CREATE INDEX runs_children ON runs (parent) WHERE parent IS NOT NULL AND status = 0;

CREATE TABLE turns (
    run bigint NOT NULL,
    turn bigint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (run, turn)
);

CREATE TABLE tasks (
    no bigint PRIMARY KEY,
    run bigint NOT NULL,
    seq bigint NOT NULL,
    queue text NOT NULL,
    ready bigint NOT NULL,
    priority integer NOT NULL,
    turn bigint NOT NULL,
    position bigint NOT NULL,
    attempt bigint NOT NULL,
    crash_count bigint NOT NULL,
    node bigint,
    external bigint,
    failure bytea,
    details bytea
) WITH (fillfactor = 80);
CREATE INDEX tasks_run ON tasks (run, seq);
-- Tasks that no node has: they are looked for every few seconds, and few at any time.
CREATE INDEX tasks_free ON tasks (queue, no) WHERE node IS NULL;
-- Those of a node, for when it is gone or has lost them from memory.
CREATE INDEX tasks_node ON tasks (node) WHERE node IS NOT NULL;

CREATE TABLE timers (
    due bigint NOT NULL,
    run bigint NOT NULL,
    kind smallint NOT NULL,
    seq bigint NOT NULL,
    PRIMARY KEY (due, run, kind, seq)
);
CREATE INDEX timers_run ON timers (run);

CREATE TABLE messages (
    no bigint PRIMARY KEY,
    run bigint NOT NULL,
    key text NOT NULL,
    sent bigint NOT NULL,
    job bytea NOT NULL,
    taken bigint,
    outcome bytea,
    chain text
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX messages_key ON messages (run, key);
CREATE INDEX messages_unseen ON messages (run) WHERE taken IS NULL;
CREATE INDEX messages_chain ON messages (chain, key) WHERE chain IS NOT NULL;

-- A search attribute is one row, a list of keywords one row for each keyword. One of word, number and real is the value.
CREATE TABLE attributes (
    run bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    place integer NOT NULL,
    parts integer NOT NULL,
    kind smallint NOT NULL,
    word text COLLATE "C",
    number bigint,
    real double precision,
    PRIMARY KEY (run, name, place)
);
CREATE INDEX attributes_word ON attributes (name, word, run) WHERE word IS NOT NULL;
CREATE INDEX attributes_number ON attributes (name, kind, number, run) WHERE number IS NOT NULL;
CREATE INDEX attributes_real ON attributes (name, kind, real, run) WHERE real IS NOT NULL;

-- Calls that one node makes of another. They mean nothing once the server has ended, so they are in no log.
CREATE UNLOGGED TABLE calls (
    id bigint PRIMARY KEY,
    node bigint NOT NULL,
    caller bigint NOT NULL,
    request bytea NOT NULL,
    is_taken boolean NOT NULL DEFAULT false,
    answer bytea
);
CREATE INDEX calls_node ON calls (node) WHERE NOT is_taken;
CREATE INDEX calls_caller ON calls (caller) WHERE answer IS NOT NULL;

-- Deleted runs whose turns and messages are yet to be removed.
CREATE TABLE garbage (
    run bigint PRIMARY KEY
);
