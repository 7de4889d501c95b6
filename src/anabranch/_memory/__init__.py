"""Arrays: creating, viewing, copying and sharing them with other libraries."""
