-- The one way into the log: append many saves in one transaction (group commit).
--
-- A save is the consecutive events of one chain that one command decided.  Saves are judged one by
-- one and in order; a save is stored whole or not at all, and one refusal does not stop the others.
-- Verdicts: 'stored'; 'known', the request or the very same bytes were recorded before;
-- 'conflict', the chain's stream has moved on (or is not there).
--
-- The advisory lock is held to the commit, so positions are committed in the order they were
-- given: a reader that has seen position n never sees a smaller one appear later.
-- A loop of index probes on purpose: the plan of a set-based form, made while the tables are
-- empty, decays as they grow.

SET LOCAL ROLE thought_ledger_owner;

CREATE FUNCTION ledger.append(
    save_chain_id    uuid[],
    save_version     bigint[],       -- of the save's first event
    save_events      int[],          -- how many
    save_actor       text[],
    save_session_id  text[],
    save_request_key uuid[],         -- null: a command without a request id
    save_digest      bytea[],
    save_answer      bytea[],
    event_topic       text[],
    event_state       bytea[],
    event_recorded_at timestamptz[]
) RETURNS TABLE (
    verdict        text,
    first_position bigint,
    last_position  bigint,
    command_digest bytea,
    answer         bytea
) LANGUAGE plpgsql AS $body$
#variable_conflict use_column
DECLARE
    taken      int := 0;
    last_event bigint;
    stored     boolean := false;
BEGIN
    -- The number is arbitrary and only has to stay the same.
    PERFORM pg_advisory_xact_lock(74110001);
    FOR save IN 1 .. cardinality(save_chain_id) LOOP
        command_digest := NULL;
        answer := NULL;
        verdict := NULL;
        first_position := NULL;
        last_position := NULL;
        IF save_request_key[save] IS NOT NULL THEN
            SELECT 'known', r.first_position, r.last_position, r.command_digest, r.answer
              INTO verdict, first_position, last_position, command_digest, answer
              FROM ledger.requests AS r
             WHERE r.request_key = save_request_key[save];
        END IF;
        IF verdict IS NULL THEN
            last_event := (
                SELECT e.originator_version
                  FROM ledger.events AS e
                 WHERE e.originator_id = save_chain_id[save]
                 ORDER BY e.originator_version DESC
                 LIMIT 1
            );
            IF coalesce(last_event = save_version[save] - 1, save_version[save] <= 1) THEN
                FOR n IN 1 .. save_events[save] LOOP
                    INSERT INTO ledger.events (
                        originator_id, originator_version, topic, state,
                        recorded_at, actor, session_id
                    ) VALUES (
                        save_chain_id[save], save_version[save] + n - 1,
                        event_topic[taken + n], event_state[taken + n],
                        event_recorded_at[taken + n], save_actor[save],
                        CASE WHEN n = 1 THEN save_session_id[save] END
                    ) RETURNING notification_id INTO last_position;
                    first_position := coalesce(first_position, last_position);
                END LOOP;
                IF save_request_key[save] IS NOT NULL THEN
                    INSERT INTO ledger.requests (
                        request_key, chain_id, command_digest, answer,
                        first_position, last_position
                    ) VALUES (
                        save_request_key[save], save_chain_id[save], save_digest[save],
                        save_answer[save], first_position, last_position
                    );
                END IF;
                verdict := 'stored';
                stored := true;
            ELSE
                -- Sent again after a lost answer?  Every payload is salted, so the same bytes are
                -- the same save.
                SELECT 'known', f.notification_id, l.notification_id
                  INTO verdict, first_position, last_position
                  FROM ledger.events AS l
                  JOIN ledger.events AS f
                    ON f.originator_id = l.originator_id
                   AND f.originator_version = save_version[save]
                 WHERE l.originator_id = save_chain_id[save]
                   AND l.originator_version = save_version[save] + save_events[save] - 1
                   AND l.state = event_state[taken + save_events[save]];
                verdict := coalesce(verdict, 'conflict');
            END IF;
        END IF;
        taken := taken + save_events[save];
        RETURN NEXT;
    END LOOP;
    IF stored THEN
        NOTIFY ledger_events;
    END IF;
END
$body$;

-- The same for one save of one event without a request id: the common case, without the arrays.
CREATE FUNCTION ledger.append_one(
    chain_id    uuid,
    version     bigint,
    topic       text,
    state       bytea,
    recorded_at timestamptz,
    actor       text,
    session_id  text
) RETURNS TABLE (verdict text, "position" bigint) LANGUAGE plpgsql AS $body$
#variable_conflict use_variable
DECLARE
    last_event bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(74110001);
    last_event := (
        SELECT e.originator_version
          FROM ledger.events AS e
         WHERE e.originator_id = chain_id
         ORDER BY e.originator_version DESC
         LIMIT 1
    );
    IF coalesce(last_event = version - 1, version <= 1) THEN
        INSERT INTO ledger.events (
            originator_id, originator_version, topic, state, recorded_at, actor, session_id
        ) VALUES (
            chain_id, version, topic, state, recorded_at, actor, session_id
        ) RETURNING notification_id INTO "position";
        verdict := 'stored';
        NOTIFY ledger_events;
    ELSE
        SELECT 'known', e.notification_id
          INTO verdict, "position"
          FROM ledger.events AS e
         WHERE e.originator_id = chain_id
           AND e.originator_version = version
           AND e.state = state;
        verdict := coalesce(verdict, 'conflict');
    END IF;
    RETURN NEXT;
END
$body$;
