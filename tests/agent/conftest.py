# What an installed dragoman brings to pytest by itself; here also where it is only on the path.
from dragoman.sim.pytest_plugin import dragoman_sim, dragoman_simulator, pytest_configure

__all__ = ["dragoman_sim", "dragoman_simulator", "pytest_configure"]
