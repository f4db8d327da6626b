"""Generated series and corruptions."""
