-- The auditor, who may read the events and nothing else; and no right the writer can do without.

DO $roles$
BEGIN
    -- Another database of the cluster may have made the role already; see 0001.
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'thought_ledger_auditor') THEN
        BEGIN
            CREATE ROLE thought_ledger_auditor;
        EXCEPTION
            WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END IF;
    -- Who reads more, the writer included, may also act as the auditor.
    IF NOT pg_has_role('thought_ledger_reader', 'thought_ledger_auditor', 'USAGE') THEN
        GRANT thought_ledger_auditor TO thought_ledger_reader;
    END IF;
    IF NOT pg_has_role(current_user, 'thought_ledger_auditor', 'SET') THEN
        GRANT thought_ledger_auditor TO CURRENT_USER;
    END IF;
END
$roles$;

SET LOCAL ROLE thought_ledger_owner;

-- ledger.requests only repeats answers to whoever asks again: it says nothing of its own.
GRANT USAGE ON SCHEMA ledger TO thought_ledger_auditor;
GRANT SELECT ON ledger.events, ledger.migrations TO thought_ledger_auditor;

-- Column by column, without the position: OVERRIDING SYSTEM VALUE would let the writer choose it.
REVOKE INSERT ON ledger.events FROM thought_ledger_writer;
GRANT INSERT (originator_id, originator_version, topic, state, recorded_at, actor, session_id)
    ON ledger.events TO thought_ledger_writer;

-- Everybody may execute a new function.
REVOKE EXECUTE ON FUNCTION
    ledger.append(
        uuid[], bigint[], int[], text[], text[], uuid[], bytea[], bytea[],
        text[], bytea[], timestamptz[]
    ),
    ledger.append_one(uuid, bigint, text, bytea, timestamptz, text, text)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
    ledger.append(
        uuid[], bigint[], int[], text[], text[], uuid[], bytea[], bytea[],
        text[], bytea[], timestamptz[]
    ),
    ledger.append_one(uuid, bigint, text, bytea, timestamptz, text, text)
    TO thought_ledger_writer;
