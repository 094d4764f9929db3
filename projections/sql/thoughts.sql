-- The read model of chains and their thoughts.  {schema} is the generation's schema.
-- Here is what the worker needs from the first event on; thoughts_indexes.sql is for readers only.

CREATE TABLE {schema}.thought_chains (
    id              uuid        PRIMARY KEY,
    tenant          text        NOT NULL,
    -- Who started it, and with which client.
    agent           text        NOT NULL,
    client          text,
    session_id      text,
    parent_chain_id uuid,
    title           text        NOT NULL,
    status          text        NOT NULL,
    thought_count   bigint      NOT NULL,
    -- Of the latest event of any kind.
    version         bigint      NOT NULL,
    -- Of the latest completion; it stays when the chain is taken up again.
    conclusion      text,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL
-- Its row is rewritten with every thought.  Room on the page and no index on what changes keep
-- that an in-page update; lists are sorted when asked for, there are far fewer chains than thoughts.
) WITH (fillfactor = 60);

CREATE TABLE {schema}.thoughts (
    id                         uuid        PRIMARY KEY,
    chain_id                   uuid        NOT NULL,
    -- The truth about order; thought_number is what the model claimed.
    sequence                   bigint      NOT NULL,
    thought                    text        NOT NULL,
    thought_number             bigint      NOT NULL,
    total_thoughts             bigint      NOT NULL,
    next_thought_needed        boolean     NOT NULL,
    needs_more_thoughts        boolean,
    is_revision                boolean     NOT NULL,
    revises_thought_number     bigint,
    revises_thought_id         uuid,
    -- The latest of them.
    revised_by_thought_id      uuid,
    branch_from_thought_number bigint,
    branch_from_thought_id     uuid,
    branch_id                  text,
    -- It, or a thought above it by parent_thought_id, was given up.
    abandoned                  boolean     NOT NULL,
    parent_thought_id          uuid,
    confidence_millionths      bigint,
    assumptions                text[],
    critique                   text,
    counter_argument           text,
    next_step_rationale        text,
    -- SHA-256 of the text as it was recorded, U+0000 included.
    content_hash               bytea       NOT NULL,
    memory_id                  uuid        NOT NULL,
    tenant                     text        NOT NULL,
    agent                      text        NOT NULL,
    client                     text,
    position                   bigint      NOT NULL,
    created_at                 timestamptz NOT NULL
);

-- What is remembered, whatever it came from: so far every thought, and nothing else.
CREATE TABLE {schema}.memories (
    id           uuid        PRIMARY KEY,
    text         text        NOT NULL,
    -- thought; session, file, web and project are reserved.
    source_type  text        NOT NULL,
    -- SHA-256 of the text as it was recorded: identical texts share one.
    content_hash bytea       NOT NULL,
    chain_id     uuid,
    thought_id   uuid        UNIQUE,
    tenant       text        NOT NULL,
    -- One JSON text, as its author gave it.
    metadata     text,
    created_at   timestamptz NOT NULL,
    position     bigint      NOT NULL
);

-- A chain is read page by page in its order; and no sequence twice.
CREATE UNIQUE INDEX thoughts_chain_idx ON {schema}.thoughts (chain_id, sequence);

-- What hangs under a thought: the worker marks it when the thought is given up.
CREATE INDEX thoughts_parent_idx ON {schema}.thoughts (parent_thought_id)
    WHERE parent_thought_id IS NOT NULL;
