"""The public names. ``kframe.lazy`` reads this file: each line imports one name under the name it has here."""

from kframe.snapshot.directory import write_snapshot as write_snapshot
from kframe.snapshot.facts import BrokerFacts as BrokerFacts
from kframe.snapshot.facts import KraftFacts as KraftFacts
from kframe.snapshot.facts import PartitionFacts as PartitionFacts
from kframe.snapshot.facts import Source as Source
from kframe.snapshot.facts import TopicFacts as TopicFacts
from kframe.snapshot.formats import FORMATS as FORMATS
from kframe.snapshot.formats import detect_format as detect_format
from kframe.snapshot.formats import read_snapshot as read_snapshot
from kframe.snapshot.generate import Health as Health
from kframe.snapshot.generate import generate as generate
from kframe.snapshot.reassignment import Assignment as Assignment
from kframe.snapshot.reassignment import Reassignment as Reassignment
from kframe.snapshot.reassignment import read_reassignment as read_reassignment
from kframe.snapshot.snapshot import Snapshot as Snapshot
from kframe.snapshot.summary import Summary as Summary
from kframe.snapshot.summary import summarize as summarize
