"""Keep what producers sent, as numbers, and judge by it what their fault strategy made of failures.

May import what `diagnosis` may, and its modules; rules import it."""
