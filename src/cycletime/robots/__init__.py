"""Robots: arms behind a network link, their simulated controllers, and what learning needs of them. No JAX here."""
