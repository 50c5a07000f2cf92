"""The broker: message store and offsets (pure over files), request processor, asyncio server."""
