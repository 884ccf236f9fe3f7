"""What a run will take of its language models, told before it begins: without network, container or key."""
