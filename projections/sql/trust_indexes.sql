-- What only readers need of the read model of trust: made after the bulk of a rebuild.

CREATE INDEX IF NOT EXISTS trust_memories_memory_idx ON {schema}.trust_memories (memory_id);
