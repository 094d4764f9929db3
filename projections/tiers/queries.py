"""The questions of the tiers to the live read models."""

SELECT_POSITION = """
    SELECT least(thoughts.position, trust.position)
      FROM live.thoughts_checkpoint AS thoughts
     CROSS JOIN live.trust_checkpoint AS trust
"""

SELECT_COUNTS = """
    SELECT count(*), coalesce(sum(thought_count), 0)::int8, count(DISTINCT session_id)
      FROM live.thought_chains
     WHERE tenant = %(tenant)s
"""

SELECT_AGENTS = """
    SELECT agent
      FROM live.thought_chains
     WHERE tenant = %(tenant)s
     GROUP BY agent
     ORDER BY count(*) DESC, agent
     LIMIT %(agents_max)s
"""

# The scores of the latest chains only: each is a mean over its thoughts.
SELECT_TITLES = """
    WITH latest AS MATERIALIZED (
        SELECT id, title, updated_at
          FROM live.thought_chains
         WHERE tenant = %(tenant)s AND status <> 'abandoned' AND title <> ''
         ORDER BY updated_at DESC, id
         LIMIT 20
    )
    SELECT left(latest.title, %(characters_max)s)
      FROM live.chain_trust AS trust
      JOIN latest ON latest.id = trust.chain_id
     WHERE trust.chain_id = ANY (ARRAY(SELECT id FROM latest))
       AND trust.score_millionths >= %(known)s
     ORDER BY latest.updated_at DESC, latest.id
     LIMIT %(titles_max)s
"""

# A value only rises by a signal, and a score is never above its value: so what is promoted now is
# among the values that are, and the mean of a chain is never above its best.
SELECT_SOLVED = """
    WITH candidate AS MATERIALIZED (
        SELECT DISTINCT chain_id
          FROM live.trust_memories
         WHERE tenant = %(tenant)s AND value_millionths >= %(promoted)s
    ), promoted AS MATERIALIZED (
        SELECT chain.id, chain.session_id, chain.title, chain.conclusion, trust.score_millionths,
               count(*) OVER () AS total
          FROM live.chain_trust AS trust
          JOIN live.thought_chains AS chain ON chain.id = trust.chain_id
         WHERE trust.chain_id = ANY (ARRAY(SELECT chain_id FROM candidate))
           AND trust.score_millionths >= %(promoted)s
           AND chain.status <> 'abandoned'
           AND (%(session_id)s::text IS NULL OR chain.session_id = %(session_id)s)
           AND (%(agent)s::text IS NULL OR chain.agent = %(agent)s)
         ORDER BY trust.score_millionths DESC, chain.updated_at DESC, chain.id
         LIMIT %(limit)s
    )
    SELECT promoted.id, promoted.session_id,
           left(promoted.title, %(characters_max)s),
           left(coalesce(nullif(promoted.conclusion, ''), last.thought), %(characters_max)s),
           promoted.score_millionths / 1000000.0::float8,
           first.position, last.position, promoted.total
      FROM promoted
     CROSS JOIN LATERAL (
           SELECT position FROM live.thoughts WHERE chain_id = promoted.id ORDER BY sequence LIMIT 1
     ) AS first
     CROSS JOIN LATERAL (
           SELECT thought, position
             FROM live.thoughts
            WHERE chain_id = promoted.id AND NOT abandoned
            ORDER BY branch_id IS NULL DESC, sequence DESC
            LIMIT 1
     ) AS last
     ORDER BY promoted.score_millionths DESC, last.position DESC
"""

# Few thoughts are ever recalled, so these are gone through; of each chain the one recalled most.
# Trust knows of branches that were given up, too.  Texts and scores of those that are shown alone:
# joined, a score would be the mean of every chain there is.
SELECT_AVOIDED = """
    WITH recalled AS MATERIALIZED (
        SELECT thought_id, recalls FROM live.trust_recalls WHERE recalls >= %(recalls_min)s
    ), dead_end AS (
        SELECT DISTINCT ON (memory.chain_id)
               memory.chain_id, memory.thought_id, memory.position, recalled.recalls,
               memory.dead_end, chain.session_id, chain.title
          FROM recalled
          JOIN live.trust_memories AS memory ON memory.thought_id = recalled.thought_id
          JOIN live.thought_chains AS chain ON chain.id = memory.chain_id
         WHERE memory.tenant = %(tenant)s
           AND (memory.dead_end OR chain.status = 'abandoned')
           AND (%(session_id)s::text IS NULL OR chain.session_id = %(session_id)s)
           AND (%(agent)s::text IS NULL OR chain.agent = %(agent)s)
         ORDER BY memory.chain_id, recalled.recalls DESC, NOT memory.dead_end, memory.sequence
    ), foremost AS MATERIALIZED (
        SELECT *, count(*) OVER () AS total
          FROM dead_end
         ORDER BY recalls DESC, position DESC
         LIMIT %(limit)s
    )
    SELECT foremost.chain_id, foremost.session_id, left(foremost.title, %(characters_max)s),
           left(thought.thought, %(characters_max)s),
           (SELECT trust.score::float8
              FROM live.chain_trust AS trust
             WHERE trust.chain_id = foremost.chain_id),
           foremost.recalls, thought.position, foremost.total
      FROM foremost
     -- What was read may hang under what was given up: a dead end is told by how it began.
     CROSS JOIN LATERAL (
           WITH RECURSIVE above (id, parent_id, steps) AS (
               SELECT id, parent_thought_id, 0 FROM live.thoughts WHERE id = foremost.thought_id
               UNION ALL
               SELECT parent.id, parent.parent_thought_id, above.steps + 1
                 FROM above
                 JOIN live.thoughts AS parent ON parent.id = above.parent_id
                 JOIN live.trust_memories AS memory ON memory.thought_id = parent.id
                WHERE foremost.dead_end AND memory.dead_end AND above.steps < %(steps_max)s
           )
           SELECT id FROM above ORDER BY steps DESC LIMIT 1
     ) AS beginning
      JOIN live.thoughts AS thought ON thought.id = beginning.id
     ORDER BY foremost.recalls DESC, foremost.position DESC
"""

# The texts of those that are shown alone.
SELECT_MEMORIES = """
    WITH foremost AS (
        SELECT chain_id, thought_id, score_millionths, score, position, count(*) OVER () AS total
          FROM live.memory_trust
         WHERE tenant = %(tenant)s
           AND value_millionths >= %(promoted)s
           AND score_millionths >= %(promoted)s
           AND counts
         ORDER BY score_millionths DESC, position DESC
         LIMIT %(limit)s
    )
    SELECT foremost.chain_id, foremost.thought_id, left(thought.thought, %(characters_max)s),
           foremost.score::float8, foremost.position, foremost.total
      FROM foremost
      JOIN live.thoughts AS thought ON thought.id = foremost.thought_id
     ORDER BY foremost.score_millionths DESC, foremost.position DESC
"""
