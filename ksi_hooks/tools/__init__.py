"""One module per outside program: kind, Podman, kubectl, systemd; none of them knows another."""
