"""What `ksi install` writes for a site, and whether what is installed still fits the settings."""
