"""The public names. ``kframe.lazy`` reads this file: each line imports one name under the name it has here."""

from kframe.embedded.brokers import SILENT as SILENT
from kframe.embedded.brokers import EmbeddedBrokers as EmbeddedBrokers
from kframe.embedded.clock import VirtualClock as VirtualClock
from kframe.embedded.ensemble import MemoryEnsemble as MemoryEnsemble
from kframe.embedded.store import MemoryStore as MemoryStore
from kframe.embedded.transport import CountingTransport as CountingTransport
from kframe.embedded.transport import RecordingTransport as RecordingTransport
from kframe.embedded.transport import Request as Request
from kframe.model.ids import Api as Api
