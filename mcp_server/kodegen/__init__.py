"""The contract of the toolset ``kodegen``, and its sessions."""
