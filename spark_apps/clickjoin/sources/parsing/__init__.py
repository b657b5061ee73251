"""From bytes to records: what every source of text shares. Runs on workers."""
