"""The registry on shared storage: which clusters exist, on which node, on which port, whose they are."""
