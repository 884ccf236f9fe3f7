"""RoboPhD wired to data, models, containers and a home."""
