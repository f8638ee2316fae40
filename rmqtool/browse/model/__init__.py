"""The model of the browser: rows in unnamed files, filled while they are shown."""
