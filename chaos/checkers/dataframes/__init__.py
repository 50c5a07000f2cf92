"""What the checks have in common over DataFrames: small tables, routes, operations, messages."""
