"""The certificate."""
