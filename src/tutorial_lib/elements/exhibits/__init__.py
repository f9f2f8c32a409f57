"""Elements that know the layer."""
