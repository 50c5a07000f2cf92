"""nemesrv: a RocketMQ NameServer cluster under chaos. Import `nemesrv.remoting`, `.clients`, `.actors`, `.chaos`."""
