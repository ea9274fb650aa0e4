from dragoman.sim.pytest_plugin import dragoman_sim, dragoman_simulator

__all__ = ["dragoman_sim", "dragoman_simulator"]
