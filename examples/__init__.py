"""Configurations and mappings to start from; no code belongs here."""
