-- What only readers need of the read model of entities and links: made after the bulk of a rebuild.

CREATE INDEX IF NOT EXISTS entities_folded_idx ON {schema}.entities (tenant, folded);
CREATE INDEX IF NOT EXISTS entities_short_idx ON {schema}.entities (tenant, short);

-- What one chain names, and what one thought does: a position is one thought.
CREATE INDEX IF NOT EXISTS entity_mentions_chain_idx ON {schema}.entity_mentions (chain_id, position, entity_id);

-- What became of a thought, what it came of, and which chains hang under one.
CREATE INDEX IF NOT EXISTS thought_links_to_idx ON {schema}.thought_links (to_thought_id) WHERE to_thought_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS thought_links_from_idx ON {schema}.thought_links (from_thought_id) WHERE from_thought_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS thought_links_chain_idx ON {schema}.thought_links (to_chain_id, kind);
CREATE INDEX IF NOT EXISTS thought_links_of_chain_idx ON {schema}.thought_links (chain_id);
