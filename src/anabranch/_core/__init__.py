"""What all other packages stand on: the core's declarations, errors, and small tools of the binding."""
