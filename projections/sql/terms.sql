-- The read model of search: BM25 over plain tables.  {schema} is the generation's schema.

-- What can be found: each thought, and the title of each chain.
CREATE TABLE {schema}.term_texts (
    -- Of its event in the log.
    position   bigint PRIMARY KEY,
    tenant     text   NOT NULL,
    chain_id   uuid   NOT NULL,
    -- NULL for a title.
    thought_id uuid,
    -- 64 bits of the whole text without case and white space; NULL for a title, which is no
    -- thought, and for a text without words.
    digest     bigint
);

-- Which texts say a term.  One row for 256 positions of the log: a row for each text would be
-- five times the rows, and a longer one no longer fits its page when it grows.
CREATE TABLE {schema}.terms (
    term    text   COLLATE "C" NOT NULL,
    tenant  text   NOT NULL,
    -- The positions divided by 256.
    block   bigint NOT NULL,
    -- One for each text, in their order: the rest of the division (from bit 22 on), how often the
    -- text says the term (6 bits, 63 stands for more) and of how many terms the text consists
    -- (16 bits).
    entries int[]  NOT NULL,
    PRIMARY KEY (term, tenant, block)
-- The rows of the last block are rewritten with every batch that says their terms.
) WITH (fillfactor = 80);

-- How many texts there are, and of how many terms in all.
CREATE TABLE {schema}.term_totals (
    tenant text   PRIMARY KEY,
    texts  bigint NOT NULL,
    terms  bigint NOT NULL
) WITH (fillfactor = 10); -- rewritten with every batch
