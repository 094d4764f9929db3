-- The vectors of one space.  A row is written once, so an index of neighbours is never touched
-- by anything but a new thought; that index is made when the space has first come to the head.

CREATE TABLE vectors.{table} (
    -- Of the thought's event in the log.
    position     bigint PRIMARY KEY,
    tenant       text   NOT NULL,
    chain_id     uuid   NOT NULL,
    thought_id   uuid   NOT NULL,
    -- SHA-256 of the text as recorded: equal texts are embedded once.
    content_hash bytea  NOT NULL,
    vector       {vector} NOT NULL
);

CREATE INDEX {chain_index} ON vectors.{table} (chain_id);
CREATE INDEX {tenant_index} ON vectors.{table} (tenant, position);
CREATE INDEX {hash_index} ON vectors.{table} (content_hash);

GRANT SELECT ON vectors.{table} TO thought_ledger_reader;
