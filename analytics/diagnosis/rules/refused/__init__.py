"""Rules about requests that a broker refuses for what they are."""
