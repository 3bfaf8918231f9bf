"""What is known of metrics and pairs by their names."""
