"""Slurm hooks that give an ordinary job its own temporary Kubernetes cluster."""

__version__ = "0.1.0"
