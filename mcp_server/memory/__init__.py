"""The toolset ``memory``: what is remembered, how far it is trusted, and what was made of it."""
