"""A session that goes on."""
