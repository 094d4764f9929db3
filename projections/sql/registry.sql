-- Which generations there are, what operators left out, and the schema readers look at.
-- Run again where an earlier version made a part of it.

CREATE SCHEMA IF NOT EXISTS projections;
CREATE SCHEMA IF NOT EXISTS live;
GRANT USAGE ON SCHEMA projections, live TO thought_ledger_reader;

CREATE TABLE IF NOT EXISTS projections.generations (
    -- Also the second half of the advisory lock its worker leads by.
    id                 int         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name               text        NOT NULL,
    number             int         NOT NULL,
    projection_version int         NOT NULL,
    schema_name        text        NOT NULL UNIQUE,
    -- kept: was live and still follows the log, to be promoted again if need be.
    -- retired: its schema is gone.
    -- scratch: built to be compared, by the session that leads it; without one it is a leftover.
    state              text        NOT NULL,
    built_at           timestamptz NOT NULL DEFAULT now(),
    promoted_at        timestamptz,
    UNIQUE (name, number)
);

ALTER TABLE projections.generations
    DROP CONSTRAINT IF EXISTS generations_state_check,
    ADD CONSTRAINT generations_state_check
        CHECK (state IN ('building', 'live', 'kept', 'retired', 'scratch'));

CREATE UNIQUE INDEX IF NOT EXISTS generations_live_idx
    ON projections.generations (name)
    WHERE state = 'live';

-- Events that every generation of one version of a projection leaves out, its chains going on
-- after them.  The next version of the projection tries them again.
CREATE TABLE IF NOT EXISTS projections.skipped (
    name               text        NOT NULL,
    projection_version int         NOT NULL,
    -- Of the event in the log, as chain_id, version and topic are.
    position           bigint      NOT NULL,
    chain_id           uuid        NOT NULL,
    version            bigint      NOT NULL,
    topic              text        NOT NULL,
    -- Of what is stored: after a restore another event may come to have the position.
    state_sha256       bytea       NOT NULL,
    -- Why it could not be applied, and why it was left out.
    error              text        NOT NULL,
    reason             text        NOT NULL CHECK (reason <> ''),
    skipped_by         text        NOT NULL,
    skipped_at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (name, projection_version, position)
);

GRANT SELECT ON projections.generations, projections.skipped TO thought_ledger_reader;

-- Wait a while for the lead of a generation; false when another session still has it.
-- A waiting session holds back the removal of dead rows in the whole database, and the worker
-- that leads makes one with every batch: so nobody waits long in one statement.  The error of
-- the time-out is caught here because an error that is sent to the client is also logged.
CREATE OR REPLACE FUNCTION projections.take_lead(lock_class int, generation_id int) RETURNS boolean
LANGUAGE plpgsql SET lock_timeout = '500ms' AS $body$
BEGIN
    PERFORM pg_advisory_lock(lock_class, generation_id);
    RETURN true;
EXCEPTION
    WHEN lock_not_available THEN
        RETURN false;
END
$body$;
