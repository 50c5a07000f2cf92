"""The broker: message store and offsets (files only, no network), request processors, asyncio server."""
