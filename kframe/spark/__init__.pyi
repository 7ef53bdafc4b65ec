"""The public names. ``kframe.lazy`` reads this file: each line imports one name under the name it has here."""

from kframe.spark.functions import plan as plan
from kframe.spark.functions import sweep as sweep
from kframe.spark.functions import validate as validate
from kframe.spark.functions import whatif as whatif
from kframe.spark.sessions import session as session
from kframe.spark.source import register as register
