"""Ask the model: a whole model in the page, with any sentence of its words."""
