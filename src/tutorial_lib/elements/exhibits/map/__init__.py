"""The live map."""
