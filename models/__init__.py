"""What a table means: contracts, configuration, prices, GPU catalogue; opens no database."""
