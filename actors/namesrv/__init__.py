"""The NameServer: route table and KV configuration (without I/O), request processor, asyncio server."""
