"""Decode captured bytes: packets, TCP, the remoting protocol, exchanges, rows.

Passive: opens no connection and raises nothing because of what was captured. Imports no other
package of the project."""
