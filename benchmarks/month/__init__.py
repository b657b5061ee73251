"""A month of traffic with a daily and a weekly rhythm: which spikes and dips are found, and which are not."""
