-- Which generations there are, and the schema readers look at.

CREATE SCHEMA projections;
CREATE SCHEMA live;
GRANT USAGE ON SCHEMA projections, live TO thought_ledger_reader;

CREATE TABLE projections.generations (
    -- Also the second half of the advisory lock its worker leads by.
    id                 int         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name               text        NOT NULL,
    number             int         NOT NULL,
    projection_version int         NOT NULL,
    schema_name        text        NOT NULL UNIQUE,
    -- kept: was live and still follows the log, to be promoted again if need be.
    -- retired: its schema is gone.
    state              text        NOT NULL
                       CHECK (state IN ('building', 'live', 'kept', 'retired')),
    built_at           timestamptz NOT NULL DEFAULT now(),
    promoted_at        timestamptz,
    UNIQUE (name, number)
);

CREATE UNIQUE INDEX generations_live_idx ON projections.generations (name) WHERE state = 'live';

GRANT SELECT ON projections.generations TO thought_ledger_reader;

-- Wait a while for the lead of a generation; false when another session still has it.
-- A waiting session holds back the removal of dead rows in the whole database, and the worker
-- that leads makes one with every batch: so nobody waits long in one statement.  The error of
-- the time-out is caught here because an error that is sent to the client is also logged.
CREATE FUNCTION projections.take_lead(lock_class int, generation_id int) RETURNS boolean
LANGUAGE plpgsql SET lock_timeout = '500ms' AS $body$
BEGIN
    PERFORM pg_advisory_lock(lock_class, generation_id);
    RETURN true;
EXCEPTION
    WHEN lock_not_available THEN
        RETURN false;
END
$body$;
