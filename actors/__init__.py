"""NameServer and broker: each consists of tables (without clock or sockets), a request processor and an asyncio server.
Ray actors run both."""
