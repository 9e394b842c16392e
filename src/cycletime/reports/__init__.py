"""What a study says: tables, a short text, and figures."""
