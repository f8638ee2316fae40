"""Hold the rules, one file each, in folders by what they are about."""
