"""RocketMQ's remoting protocol: frames, commands, bodies, stored messages, and an asyncio transport. `remoting` imports
neither Ray nor Spark nor any other nemesrv package."""
