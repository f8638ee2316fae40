"""Read the inputs of a report: decoded logs, single files and captures, as relations."""
