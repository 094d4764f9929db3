"""Questions to the live read model ``entities``: what is named, in which chains, beside what."""

# Before the tables are analysed the planner takes each for a row or two.  So rows are found by an
# index for each of a few that were found before (LATERAL, OFFSET 0), or grouped once.

# The compiler of plans takes longer than the questions.
SELECT_POSITION = """
    SELECT set_config('jit', 'off', false), least(entities.position, thoughts.position)
      FROM live.entities_checkpoint AS entities
     CROSS JOIN live.thoughts_checkpoint AS thoughts
"""

# Those that are called so; only where there are none, those that are called so for short.
SELECT_MATCHED = """
    WITH whole AS MATERIALIZED (
        SELECT id, kind, name, written
          FROM live.entities
         WHERE tenant = %(tenant)s
           AND folded = ANY (%(keys)s)
           AND (%(kind)s::text IS NULL OR kind = %(kind)s)
         ORDER BY id = ANY (%(ids)s) DESC, position DESC
         LIMIT %(matched_max)s
    )
    SELECT id, kind, name, written
      FROM whole
     UNION ALL
   (SELECT id, kind, name, written
      FROM live.entities
     WHERE NOT EXISTS (SELECT FROM whole)
       AND tenant = %(tenant)s
       AND short = ANY (%(keys)s)
       AND (%(kind)s::text IS NULL OR kind = %(kind)s)
     ORDER BY position DESC
     LIMIT %(matched_max)s)
"""

SELECT_OF_CHAIN = """
    SELECT entity.id, entity.kind, entity.name, entity.written
      FROM (SELECT entity_id, count(*) AS thoughts, max(position) AS latest
              FROM live.entity_mentions
             WHERE chain_id = %(chain_id)s
             GROUP BY entity_id) AS named
     CROSS JOIN LATERAL (
           SELECT id, kind, name, written
             FROM live.entities
            WHERE id = named.entity_id
              AND tenant = %(tenant)s
              AND (%(kind)s::text IS NULL OR kind = %(kind)s)
           OFFSET 0
     ) AS entity
     ORDER BY named.thoughts DESC, named.latest DESC, entity.name
     LIMIT %(entities_max)s
"""

# First the entities, then the chains that mention them; ``others`` are the chains of an entity, and
# of a chain how many of the entities it mentions.
SELECT_MENTIONING = """
    WITH named AS MATERIALIZED (
        SELECT entity_id, chain_id, count(*) AS thoughts, max(position) AS latest
          FROM live.entity_mentions
         WHERE entity_id = ANY (%(ids)s)
         GROUP BY entity_id, chain_id
    ), entity AS MATERIALIZED (
        SELECT entity_id AS id,
               sum(thoughts)::int8 AS mentions,
               count(*) AS others,
               max(latest) AS latest,
               count(*) OVER () AS total,
               entity_id = ANY (%(first_ids)s) AS is_first
          FROM named
         GROUP BY entity_id
         ORDER BY is_first DESC, others DESC, mentions DESC, latest DESC
         LIMIT %(entities_max)s
    ), chain AS (
        SELECT chain_id AS id,
               sum(thoughts)::int8 AS mentions,
               count(*) AS others,
               max(latest) AS latest,
               count(*) OVER () AS total
          FROM named
         WHERE entity_id = ANY (ARRAY(SELECT id FROM entity))
           AND chain_id IS DISTINCT FROM %(chain_id)s::uuid
         GROUP BY chain_id
         ORDER BY others DESC, mentions DESC, latest DESC
         LIMIT %(limit)s
    )
    SELECT false AS is_chain, id, mentions, others, latest, total, is_first FROM entity
     UNION ALL
    SELECT true, id, mentions, others, latest, total, false FROM chain
     ORDER BY is_chain, is_first DESC, others DESC, mentions DESC, latest DESC
"""

# With the latest thought that mentions one.
SELECT_CHAINS = """
    SELECT chain.id, chain.session_id, chain.status, left(chain.title, %(characters_max)s),
           left(thought.thought, %(characters_max)s)
      FROM unnest(%(chain_ids)s::uuid[], %(positions)s::int8[]) AS found (chain_id, position)
     CROSS JOIN LATERAL (
           SELECT id, session_id, status, title
             FROM live.thought_chains
            WHERE id = found.chain_id AND tenant = %(tenant)s
           OFFSET 0
     ) AS chain
      LEFT JOIN LATERAL (
           SELECT thought_id
             FROM live.entity_mentions
            WHERE chain_id = found.chain_id AND position = found.position
            LIMIT 1
     ) AS mention ON true
      LEFT JOIN LATERAL (
           SELECT thought
             FROM live.thoughts
            WHERE id = mention.thought_id
           OFFSET 0
     ) AS thought ON true
"""

# Of the latest thoughts that mention one of the entities.
SELECT_TOGETHER = """
    WITH latest AS MATERIALIZED (
        SELECT DISTINCT mention.position, mention.chain_id
          FROM unnest(%(ids)s::uuid[]) AS asked (id)
         CROSS JOIN LATERAL (
               SELECT position, chain_id
                 FROM live.entity_mentions
                WHERE entity_id = asked.id
                ORDER BY position DESC
                LIMIT %(thoughts_max)s
         ) AS mention
         ORDER BY mention.position DESC
         LIMIT %(thoughts_max)s
    ), beside AS (
        SELECT other.entity_id AS id, count(*) AS thoughts
          FROM latest
         CROSS JOIN LATERAL (
               SELECT entity_id
                 FROM live.entity_mentions
                WHERE chain_id = latest.chain_id AND position = latest.position
               OFFSET 0
         ) AS other
         WHERE other.entity_id <> ALL (%(ids)s)
         GROUP BY other.entity_id
         ORDER BY thoughts DESC, id
         LIMIT %(entities_max)s
    )
    SELECT entity.kind, entity.name, beside.thoughts
      FROM beside
     CROSS JOIN LATERAL (
           SELECT kind, name
             FROM live.entities
            WHERE id = beside.id AND tenant = %(tenant)s
           OFFSET 0
     ) AS entity
     ORDER BY beside.thoughts DESC, entity.kind, entity.name
"""
