"""Define what one row of output says and write rows as JSON lines, CSV and Parquet.

May import `facts`, `json_bytes`, `printable` and `times`; knows no capture and no connection.
"""
