"""Hold the rules, one file each, in folders by what they are about.

May import nothing itself; what each folder may import stands there.
"""
