"""The documents: navigation, links, commands and generated parts are held to what is there."""
