"""Read TLS without I/O: key logs, records, handshakes, key schedules, decryption, certificates."""
