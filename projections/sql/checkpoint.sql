-- How far a generation has come, and what it had to leave out.  In the schema of the generation:
-- dropping it forgets rows and position together.

CREATE TABLE {schema}.checkpoint (
    only_row   boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    position   bigint      NOT NULL DEFAULT 0,
    -- Raised by each new leader, so that a stalled old one can move nothing any more.
    epoch      bigint      NOT NULL DEFAULT 0,
    -- Whether readers wait for this generation: true while it is live.
    announced  boolean     NOT NULL DEFAULT false,
    updated_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 10); -- the row is rewritten with every batch; room for that on its page

-- Chains with an event that could not be applied.  Nothing of such a chain is applied from
-- position on, so a retry starts there (projections/unparking.py).
CREATE TABLE {schema}.parked (
    -- The stream: the chain, or the stream of a chain's recalls.
    chain_id      uuid        PRIMARY KEY,
    position      bigint      NOT NULL,
    version       bigint      NOT NULL,
    topic         text        NOT NULL,
    error         text        NOT NULL,
    events        bigint      NOT NULL,
    last_position bigint      NOT NULL,
    parked_at     timestamptz NOT NULL DEFAULT now()
);

INSERT INTO {schema}.checkpoint DEFAULT VALUES;

GRANT USAGE ON SCHEMA {schema} TO thought_ledger_reader;
GRANT SELECT ON {schema}.checkpoint, {schema}.parked TO thought_ledger_reader;
