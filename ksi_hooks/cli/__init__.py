"""The commands of administrators and users; the only place besides ksi-gc that prints."""
