-- The log: every event of every chain, in one table that can only grow.
-- The column names of ledger.events are those of the eventsourcing library.

CREATE EXTENSION IF NOT EXISTS vector;

-- Roles belong to the whole cluster, so another database may have made them already.
DO $roles$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY[
        'thought_ledger_owner', 'thought_ledger_writer',
        'thought_ledger_projector', 'thought_ledger_reader'
    ] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I', role);
            EXCEPTION
                WHEN duplicate_object OR unique_violation THEN NULL;
            END;
        END IF;
        -- Whoever migrates may act as each of them; a superuser may anyway.  Whoever makes a role
        -- is a member of it and still may not act as it, so membership is not the question.
        IF NOT pg_has_role(current_user, role, 'SET') THEN
            EXECUTE format('GRANT %I TO CURRENT_USER', role);
        END IF;
    END LOOP;
    EXECUTE format(
        'GRANT CREATE ON DATABASE %I TO thought_ledger_owner, thought_ledger_projector',
        current_database()
    );
    -- Who may not grant it need not, where another database's migration has.
    IF NOT pg_has_role('thought_ledger_writer', 'thought_ledger_reader', 'USAGE') THEN
        GRANT thought_ledger_reader TO thought_ledger_writer;
    END IF;
END
$roles$;

ALTER SCHEMA ledger OWNER TO thought_ledger_owner;
ALTER TABLE ledger.migrations OWNER TO thought_ledger_owner;
GRANT USAGE ON SCHEMA ledger
    TO thought_ledger_writer, thought_ledger_projector, thought_ledger_reader;
GRANT SELECT ON ledger.migrations
    TO thought_ledger_writer, thought_ledger_projector, thought_ledger_reader;

SET LOCAL ROLE thought_ledger_owner;

CREATE TABLE ledger.events (
    originator_id      uuid        NOT NULL,
    originator_version bigint      NOT NULL CHECK (originator_version >= 0),
    topic              text        NOT NULL,
    -- header LF payload; see docs/stored-format.md
    state              bytea       NOT NULL,
    notification_id    bigint      GENERATED ALWAYS AS IDENTITY,
    -- Copies of what the header says, for querying only.
    recorded_at        timestamptz NOT NULL,
    actor              text        NOT NULL,
    session_id         text,
    PRIMARY KEY (originator_id, originator_version)
);

CREATE UNIQUE INDEX events_notification_id_idx ON ledger.events (notification_id);

-- Only chain.started carries a session, so this index holds one entry a chain.
CREATE INDEX events_session_id_idx
    ON ledger.events (session_id, notification_id)
    WHERE session_id IS NOT NULL;

CREATE TABLE ledger.requests (
    -- Made of tenant, principal and request id (ledger.requests in the code).
    request_key    uuid   PRIMARY KEY,
    chain_id       uuid   NOT NULL,
    -- SHA-256 of the command, so that an id cannot be used again for another one.
    command_digest bytea  NOT NULL,
    answer         bytea  NOT NULL,
    first_position bigint NOT NULL,
    last_position  bigint NOT NULL
);

-- Append-only is a property of the database, not a promise of the code.
CREATE FUNCTION ledger.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'insufficient_privilege';
END
$body$;

CREATE TRIGGER refuse_change
    BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.events
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();

CREATE TRIGGER refuse_change
    BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.requests
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();

GRANT SELECT, INSERT ON ledger.events, ledger.requests TO thought_ledger_writer;
GRANT SELECT ON ledger.events, ledger.requests
    TO thought_ledger_projector, thought_ledger_reader;
