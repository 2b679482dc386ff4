"""Why there is no simulation, or no more of it. Each text is one sentence for whoever started it."""


class SimulationRefused(Exception):
    """Nothing can be played there."""


class KeyRefused(SimulationRefused):
    """The key opens nothing there."""


class Stopped(Exception):
    """The play is over; whoever was about to go on leaves."""
