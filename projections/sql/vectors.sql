-- The spaces of vectors, outside any generation: a rebuild of a read model embeds nothing.
-- Run again where an earlier version made a part of it.  The tables of a space, thoughts_<number>,
-- are made with it: vectors_space.sql.

CREATE SCHEMA IF NOT EXISTS vectors;
GRANT USAGE ON SCHEMA vectors TO thought_ledger_reader;

CREATE TABLE IF NOT EXISTS vectors.spaces (
    number      int         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    model       text        NOT NULL,
    -- SHA-256 over the files that decide what a text becomes.
    revision    text        NOT NULL,
    dimensions  int         NOT NULL CHECK (dimensions BETWEEN 1 AND 16000),
    normalised  boolean     NOT NULL,
    -- What loaded the model last: a path is that of some machine.
    source      text        NOT NULL,
    -- building: beside the live one, until it has come to the head of the log.
    -- kept: was live, to go back to; it is not kept up.
    state       text        NOT NULL CHECK (state IN ('building', 'live', 'kept')),
    -- Readers were taken back from it by an operator, so it is not promoted by itself.
    withdrawn   boolean     NOT NULL DEFAULT false,
    -- The log has been gone through up to here.
    position    bigint      NOT NULL DEFAULT 0,
    thoughts    bigint      NOT NULL DEFAULT 0,
    -- Of them, how many the model has embedded; the others had the text of one that was there.
    embedded    bigint      NOT NULL DEFAULT 0,
    created_at  timestamptz NOT NULL DEFAULT now(),
    updated_at  timestamptz NOT NULL DEFAULT now(),
    promoted_at timestamptz,
    UNIQUE (model, revision, dimensions, normalised)
);

CREATE UNIQUE INDEX IF NOT EXISTS spaces_live_idx ON vectors.spaces (state) WHERE state = 'live';

-- Thoughts without a vector: their events cannot be read, or the model fails on their texts.
-- Each embedding process tries them once more when it starts.
CREATE TABLE IF NOT EXISTS vectors.left_out (
    space        int         NOT NULL REFERENCES vectors.spaces ON DELETE CASCADE,
    -- Of the event in the log, as chain_id, version and topic are.
    position     bigint      NOT NULL,
    chain_id     uuid        NOT NULL,
    version      bigint      NOT NULL,
    topic        text        NOT NULL,
    error        text        NOT NULL,
    left_out_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (space, position)
);

-- How the embedding process is, as it said last, or why there is none.
CREATE TABLE IF NOT EXISTS vectors.embedder (
    only_row   boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    state      text        NOT NULL,
    reason     text        NOT NULL,
    model      text,
    -- Texts a second, of late.
    rate       float8,
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- Questions to embed.  A crash of the server forgets them, and nobody waits that long.
CREATE UNLOGGED TABLE IF NOT EXISTS vectors.questions (
    id         uuid        PRIMARY KEY,
    asked_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    text       text        NOT NULL,
    -- The answer: a vector in a space, or why there is none.
    space      int,
    dimensions int,
    vector     text,
    failure    text
);

GRANT SELECT ON vectors.spaces, vectors.left_out, vectors.embedder, vectors.questions
    TO thought_ledger_reader;

-- ready, loading, or none: seen by the locks of the process, which die with it.
CREATE OR REPLACE FUNCTION vectors.embedder_presence() RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $body$
    SELECT CASE max(lock.objid::bigint) WHEN 2 THEN 'ready' WHEN 1 THEN 'loading' ELSE 'none' END
      FROM pg_locks AS lock
     WHERE lock.locktype = 'advisory'
       AND lock.database = (SELECT oid FROM pg_database WHERE datname = current_database())
       AND lock.classid = 74110004
       AND lock.objsubid = 2
       AND lock.granted
$body$;

-- Ask for the vector of a text.  The outcome is "known" with the vector of a thought of that very
-- text, "asked" when the embedding process was told, or else how it is, and why.
-- Who may only read may ask: nothing else can be written so.
CREATE OR REPLACE FUNCTION vectors.ask(
    asked_id uuid, asked_text text, asked_hash bytea,
    OUT outcome text, OUT reason text,
    OUT space_number int, OUT space_dimensions int, OUT known_vector text
)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    SELECT number, dimensions
      INTO space_number, space_dimensions
      FROM vectors.spaces
     WHERE state = 'live';
    IF FOUND THEN
        EXECUTE format(
            'SELECT vector::text FROM vectors.thoughts_%s WHERE content_hash = $1 LIMIT 1',
            space_number
        ) INTO known_vector USING asked_hash;
        IF known_vector IS NOT NULL THEN
            outcome := 'known';
            RETURN;
        END IF;
    END IF;
    -- Nothing of it need survive a crash.
    PERFORM set_config('synchronous_commit', 'off', true);
    outcome := vectors.embedder_presence();
    IF outcome = 'ready' THEN
        INSERT INTO vectors.questions (id, text) VALUES (asked_id, left(asked_text, 16384));
        outcome := 'asked';
    ELSIF outcome = 'none' THEN
        SELECT embedder.state, embedder.reason INTO outcome, reason FROM vectors.embedder;
        outcome := coalesce(outcome, 'none');
    END IF;
    -- Where no process embeds, a worker that hears it starts one.
    PERFORM pg_notify('vectors_questions', '');
END
$body$;

REVOKE EXECUTE ON FUNCTION vectors.embedder_presence(), vectors.ask(uuid, text, bytea) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION vectors.embedder_presence(), vectors.ask(uuid, text, bytea)
    TO thought_ledger_reader;
