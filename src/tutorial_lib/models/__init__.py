"""Models around the layer, each with its gradients by hand or its training: chapter 08, Part IV.

A file is imported by its own name, with the chapter of what is taken from it:
`from tutorial_lib.models.training import train  # introduced in chapter 08`.
"""
