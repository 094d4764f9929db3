-- Which backups were taken, so that their age can be told.

SET LOCAL ROLE thought_ledger_owner;

CREATE TABLE ledger.backups (
    id            uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
    -- The moment whose state is in the backup.
    taken_at      timestamptz NOT NULL,
    -- Of the last event in it.
    head_position bigint      NOT NULL,
    events        bigint      NOT NULL,
    bytes         bigint      NOT NULL,
    -- Without the read models.
    log_only      boolean     NOT NULL,
    taken_by      text        NOT NULL
);

CREATE TRIGGER refuse_change
    BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger.backups
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();

GRANT SELECT ON ledger.backups TO thought_ledger_reader;
GRANT SELECT, INSERT ON ledger.backups TO thought_ledger_writer;

-- A backup has to know where the positions go on.
GRANT SELECT ON SEQUENCE ledger.events_notification_id_seq TO thought_ledger_writer;
