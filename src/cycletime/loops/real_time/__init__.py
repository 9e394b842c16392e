"""Algorithm 1 in real time: act, send, then learn, at absolute deadlines, around a robot that does not wait."""
