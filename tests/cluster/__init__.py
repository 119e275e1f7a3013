"""Tests with real Slurm, Podman, kind and Kubernetes."""
