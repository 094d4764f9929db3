-- What only readers need of the read model of search: made after the bulk of a rebuild.

-- An exact text is found however common its terms are.
CREATE INDEX IF NOT EXISTS term_texts_digest_idx ON {schema}.term_texts (digest) WHERE digest IS NOT NULL;
