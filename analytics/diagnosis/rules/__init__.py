"""The rules, one file each, in folders by what they are about.

May import the contract beside this folder, and `dissectors.remoting`."""
