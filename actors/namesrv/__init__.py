"""The NameServer: route table and KV configuration (pure), request processor, asyncio server."""
