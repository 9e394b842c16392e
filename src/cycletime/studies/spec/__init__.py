"""What a study is, and the file that says so."""
