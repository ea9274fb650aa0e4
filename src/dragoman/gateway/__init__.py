"""The gateway: any client in, any model out. `dragoman serve` runs it."""
