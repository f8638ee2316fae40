"""Draw bounded output on terminals, with rich: the only folder that hands text to it."""
