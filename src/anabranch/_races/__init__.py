"""What a race looks like to the program."""
