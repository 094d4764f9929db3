-- The read model of trust.  {schema} is the generation's schema.
-- Tables keep values and the clocks they stand at; scores are computed when they are asked for.

CREATE TABLE {schema}.trust_chains (
    chain_id      uuid    PRIMARY KEY,
    tenant        text    NOT NULL,
    -- Who started it.
    agent         text    NOT NULL,
    completed     boolean NOT NULL,
    has_dead_ends boolean NOT NULL,
    -- Microseconds of all pauses that have ended; and since 1970, when the present one began.
    paused        bigint  NOT NULL,
    paused_since  bigint
);

-- Who has confirmed a chain as a whole, in UTF-8: it tells once for each.
CREATE TABLE {schema}.trust_confirmations (
    chain_id uuid  NOT NULL,
    source   bytea NOT NULL,
    PRIMARY KEY (chain_id, source)
);

CREATE TABLE {schema}.trust_memories (
    thought_id        uuid        PRIMARY KEY,
    memory_id         uuid        NOT NULL,
    chain_id          uuid        NOT NULL,
    tenant            text        NOT NULL,
    sequence          bigint      NOT NULL,
    -- Of the thought's event in the log.
    position          bigint      NOT NULL,
    parent_thought_id uuid,
    -- In UTF-8; NULL on the trunk.
    branch            bytea,
    -- Microseconds since 1970 without the chain's pauses: when value was worth what it says.
    clock             bigint      NOT NULL,
    value_millionths  int         NOT NULL,
    -- How many signals of each kind have told.
    agent_used        int         NOT NULL,
    user_confirmed    int         NOT NULL,
    agent_ignored     int         NOT NULL,
    user_corrected    int         NOT NULL,
    superseded        int         NOT NULL,
    -- It, or a thought above it, was given up, or its branch was.
    dead_end          boolean     NOT NULL,
    last_signal_at    timestamptz
-- A completion rewrites the rows of a whole chain: room for that, and no index on what changes.
) WITH (fillfactor = 70);

-- A chain's thoughts in their order, and its last.
CREATE INDEX trust_memories_chain_idx ON {schema}.trust_memories (chain_id, sequence);

-- What hangs under a thought, and what is on a branch: both may turn out dead ends.
CREATE INDEX trust_memories_parent_idx ON {schema}.trust_memories (parent_thought_id)
    WHERE parent_thought_id IS NOT NULL;
CREATE INDEX trust_memories_branch_idx ON {schema}.trust_memories (chain_id, branch)
    WHERE branch IS NOT NULL;

-- In a table of its own: recalls come in a stream of their own, before or after those of the chain.
CREATE TABLE {schema}.trust_recalls (
    thought_id       uuid        PRIMARY KEY,
    -- The stream of the recalls of its chain.
    stream_id        uuid        NOT NULL,
    recalls          bigint      NOT NULL,
    last_recalled_at timestamptz NOT NULL
) WITH (fillfactor = 70);

-- Policy 1, as projections/trust/policy.py has it.

CREATE FUNCTION {schema}.decayed(value bigint, elapsed bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    CASE WHEN value <= 200000 OR elapsed <= 0 THEN value
         ELSE 200000 + floor(
             (value - 200000) * power(0.5::float8, least(elapsed / 7776000000000::float8, 64)) + 0.5
         )::bigint
    END;

-- The score, in millionths, at any moment that is not before the last signal.
CREATE FUNCTION {schema}.score_at(
    value bigint, clock bigint, paused bigint, paused_since bigint, moment timestamptz
) RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE RETURN
    {schema}.decayed(
        value,
        least((extract(epoch FROM moment) * 1000000)::bigint, paused_since) - paused - clock
    );

CREATE FUNCTION {schema}.level_of(score bigint) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN
    CASE WHEN score < 200000 THEN 'archived'
         WHEN score < 400000 THEN 'low'
         WHEN score < 700000 THEN 'medium'
         WHEN score < 800000 THEN 'high'
         WHEN score IS NOT NULL THEN 'promoted'
    END;

-- What is trusted how much now, and why.
CREATE VIEW {schema}.memory_trust AS
    SELECT memory.memory_id,
           memory.thought_id,
           memory.chain_id,
           memory.tenant,
           memory.sequence,
           memory.position,
           scored.score AS score_millionths,
           round(scored.score / 1000000.0, 4) AS score,
           {schema}.level_of(scored.score) AS level,
           scored.score < 200000 AS archived,
           memory.superseded = 0 AND NOT memory.dead_end AS counts,
           memory.dead_end,
           memory.agent_used,
           memory.user_confirmed,
           memory.agent_ignored,
           memory.user_corrected,
           memory.superseded,
           coalesce(recall.recalls, 0) AS recalls,
           memory.last_signal_at,
           recall.last_recalled_at,
           memory.value_millionths,
           memory.clock
      FROM {schema}.trust_memories AS memory
      JOIN {schema}.trust_chains AS chain ON chain.chain_id = memory.chain_id
      LEFT JOIN {schema}.trust_recalls AS recall ON recall.thought_id = memory.thought_id
     CROSS JOIN LATERAL (
           SELECT {schema}.score_at(
                      memory.value_millionths, memory.clock, chain.paused, chain.paused_since, now()
                  ) AS score
     ) AS scored;

-- The mean over the thoughts of a chain that count; NULL when none does.
CREATE VIEW {schema}.chain_trust AS
    SELECT mean.chain_id,
           chain.tenant,
           chain.agent,
           mean.score AS score_millionths,
           round(mean.score / 1000000.0, 4) AS score,
           {schema}.level_of(mean.score) AS level,
           mean.counting,
           mean.thoughts
      FROM (SELECT memory.chain_id,
                   round(avg(memory.score_millionths) FILTER (WHERE memory.counts))::bigint AS score,
                   count(*) FILTER (WHERE memory.counts) AS counting,
                   count(*) AS thoughts
              FROM {schema}.memory_trust AS memory
             GROUP BY memory.chain_id) AS mean
      JOIN {schema}.trust_chains AS chain ON chain.chain_id = mean.chain_id;

-- The mean over the chains an agent has started.
CREATE VIEW {schema}.agent_trust AS
    SELECT mean.tenant,
           mean.agent,
           mean.score AS score_millionths,
           round(mean.score / 1000000.0, 4) AS score,
           {schema}.level_of(mean.score) AS level,
           mean.chains
      FROM (SELECT chain.tenant,
                   chain.agent,
                   round(avg(chain.score_millionths))::bigint AS score,
                   count(chain.score_millionths) AS chains
              FROM {schema}.chain_trust AS chain
             GROUP BY chain.tenant, chain.agent) AS mean;
