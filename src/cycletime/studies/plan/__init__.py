"""What a study has to do, and how long that takes."""
