"""What stands before servers that outside clients dial: it sees every dial, frame and byte, and can misbehave."""
