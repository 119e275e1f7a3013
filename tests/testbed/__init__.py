"""Builds and runs the real thing on one machine: Kubernetes programs, node image, Podman, Slurm."""
