"""docker-compose.yml on a real engine."""
