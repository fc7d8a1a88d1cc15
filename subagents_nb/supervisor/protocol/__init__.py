"""How launchers, supervisors and runners talk: sockets, lines, the handshake of a start."""
