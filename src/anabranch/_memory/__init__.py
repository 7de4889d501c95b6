"""Arrays: how they are made, viewed, copied and shared with other libraries."""
