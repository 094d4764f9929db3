"""The toolset ``memory``: what its tools are given, and what clients are told of them."""
