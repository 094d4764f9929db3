-- The read model of what thoughts name, and of how they hang together.  {schema} is the
-- generation's schema.

-- What is named: a file, a symbol, a package, an address, a quoted name.
CREATE TABLE {schema}.entities (
    -- Made of tenant, kind and name.
    id       uuid   PRIMARY KEY,
    tenant   text   NOT NULL,
    -- file, symbol, package, url or name.
    kind     text   NOT NULL,
    -- The same for all ways to write it.
    name     text   NOT NULL,
    -- Without case; and what it is also called: a file without its folders, a symbol without its
    -- module, a package without its scope, the host of an address.
    folded   text   COLLATE "C" NOT NULL,
    short    text   COLLATE "C" NOT NULL,
    -- As the first thought that names it has it, and the position of that one's event.
    written  text   NOT NULL,
    position bigint NOT NULL
);

-- Which thought names it: one row, however often the thought does.
CREATE TABLE {schema}.entity_mentions (
    entity_id  uuid   NOT NULL,
    -- Of the event of the thought.
    position   bigint NOT NULL,
    chain_id   uuid   NOT NULL,
    thought_id uuid   NOT NULL,
    -- The thoughts of an entity are gone through from the latest on, and counted by chain.
    PRIMARY KEY (entity_id, position) INCLUDE (chain_id)
);

-- What a thought, a chain or a judgement has to do with an earlier thought or chain.
CREATE TABLE {schema}.thought_links (
    -- Of the event that says so, in the log.
    position        bigint NOT NULL,
    -- supersedes: a revision, and what it revises.
    -- derived_from: the first thought of a branch, and the thought it leaves from; a chain, and the
    -- chain it was started under, without thoughts.
    -- contradicts: what a user corrected; that is no thought, so from_thought_id is NULL.
    kind            text   NOT NULL,
    tenant          text   NOT NULL,
    -- The chain of the event, and that of what it speaks of.
    chain_id        uuid   NOT NULL,
    to_chain_id     uuid   NOT NULL,
    from_thought_id uuid,
    to_thought_id   uuid,
    PRIMARY KEY (position, kind)
);
