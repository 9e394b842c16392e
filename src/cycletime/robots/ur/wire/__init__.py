"""What goes over the network between a UR controller and its clients, as pure functions."""
