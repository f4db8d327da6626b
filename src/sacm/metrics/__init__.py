"""What a prediction is worth: pure functions from predictions and truth to frozen reports."""
