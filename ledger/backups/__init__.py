"""Backup and restore of a database with the log in it, by PostgreSQL's own programs."""
