"""Writing specifications: a conversation with a model that ends in one, or in the reason why not."""
