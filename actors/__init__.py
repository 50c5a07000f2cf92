"""The servers, NameServer and broker: pure core, processor, asyncio server, and the Ray shell around them."""
