"""What a person can ask an agent to do with the ledger: prompts."""
