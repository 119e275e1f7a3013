"""Tests with real Slurm daemons and real users; kind, Podman and kubectl are the stateful fakes."""
