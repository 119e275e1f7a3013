"""Everything that knows Slurm: its variables, its constraint expressions, its answers."""
