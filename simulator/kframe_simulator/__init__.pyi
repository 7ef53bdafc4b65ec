"""The public names. ``kframe.lazy`` reads this file: each line imports one name under the name it has here."""

from kframe_simulator.faults.plan import CLASSES as CLASSES
from kframe_simulator.faults.plan import Action as Action
from kframe_simulator.faults.plan import draw_plan as draw_plan
from kframe_simulator.invariants import INVARIANTS as INVARIANTS
from kframe_simulator.simulation.options import Options as Options
from kframe_simulator.simulation.options import draw_options as draw_options
from kframe_simulator.simulation.run import Totals as Totals
from kframe_simulator.simulation.run import plan_of as plan_of
from kframe_simulator.simulation.run import play as play
from kframe_simulator.simulation.run import play_seed as play_seed
from kframe_simulator.simulation.run import play_seeds as play_seeds
from kframe_simulator.simulation.run import shrink as shrink
from kframe_simulator.simulation.simulation import Result as Result
from kframe_simulator.simulation.simulation import Simulation as Simulation
from kframe_simulator.simulation.watch import Violation as Violation
