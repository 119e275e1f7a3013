"""The life of a job's cluster: claim, create, attach, release, delete."""
