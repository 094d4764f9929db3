-- What only readers need of the read model of chains and their thoughts: made after the bulk of a
-- rebuild.  Nothing here may refuse a row, or a rebuild would end where a worker parks a chain.

-- A branch is read page by page in its order; thoughts on the trunk, most of all, cost it nothing.
CREATE INDEX IF NOT EXISTS thoughts_branch_idx ON {schema}.thoughts (chain_id, branch_id, sequence)
    WHERE branch_id IS NOT NULL;

-- From a vector, which belongs to a text, to the memories that say it.
CREATE INDEX IF NOT EXISTS memories_content_idx ON {schema}.memories (content_hash);
