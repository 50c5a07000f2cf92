"""The producer: sends, retries, queue selection and the fault strategy."""
