"""Every array of the layer, to be edited and asked."""
