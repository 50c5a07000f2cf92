"""NameServer and broker: each has tables (without clock or sockets), a request processor and an asyncio server. Ray
actors run them."""
