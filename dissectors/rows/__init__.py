"""Define what one row of output says and write rows as JSON lines, CSV and Parquet.

Knows no capture and no connection; may import `remoting` and the modules beside the folders."""
