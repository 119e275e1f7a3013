"""The programs that Slurm starts, and the boundary where their exceptions stop."""
