"""What clusters need on a node: facts are gathered in one place, judged by pure functions elsewhere."""
