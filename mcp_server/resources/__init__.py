"""What an agent can read by address, and what is told about it."""
