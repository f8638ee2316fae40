"""The screens of `browse`, on Textual.

Text from the network is made printable before it is drawn, and never read as markup.
"""
