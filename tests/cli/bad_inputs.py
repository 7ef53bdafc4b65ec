"""The table of bad inputs: command line, exit code, and the location that the error names.

Words in capitals are files of ``make_files``; ``*`` is every reader or format of a list.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.cli.running import HEALTHY, PLAN


class BadInput(NamedTuple):
    """A command line, its exit code, and a text of its one line on standard error."""

    line: str
    code: int
    message: str


_SCENARIO: Final = """\
schema: kframe.scenario/v1
name: x
brokers: [1, 2]
topics: [{name: t, partitions: [{partition: 0, replicas: [1, 2]}]}]
steps: [{elect: {}}]
"""


def _journal(version: int) -> str:
    """The first entry of a journal of another cluster."""
    limits = '{"throttle":null,"concurrency":1,"max_under_replicated":0}'
    text = (
        f'{{"type":"started","version":{version},"plan":"p","plan_digest":"d","cluster_id":"other",'
        f'"url":"kafka://127.0.0.1:1","limits":{limits},"stages":[],'
        '"unhealthy":{"offline":[],"under_replicated":[]}}'
    )
    return f"{zlib.crc32(text.encode()):08x} {text}\n"


_TEXTS: Final = {
    "JOURNAL": _journal(1),
    "JOURNAL_VERSION": _journal(9),
    "JOURNAL_CUT": _journal(1)[:-9],
    "EMPTY": "",
    "NONSENSE": "Lorem ipsum dolor sit amet\n",
    "PLAN_TWICE": '{"version":1,"partitions":[{"topic":"t","topic":"u","partition":0,"replicas":[1]}]}',
    "PLAN_UNKNOWN": '{"version":1,"partitions":[],"partitons":[]}',
    "PLAN_VERSION": '{"version":7,"partitions":[]}',
    "PLAN_TYPE": '{"version":1,"partitions":[{"topic":"t","partition":"0","replicas":[1]}]}',
    "PLAN_CUT": '{"version":1,"partitions":[{"topic":"t",',
    "PLAN_STAMP": '{"version":1,"partitions":[],"kframe":{"cluster":"x"}}',
    "PLAN_LOST": '{"version":1,"partitions":[{"topic":"nosuch","partition":0,"replicas":[1,2,3]}]}',
    "SIZES": "topic,partition,bytes\n__consumer_offsets,0,big\n",
    "SIZES_FEW": "topic,partition,bytes\n__consumer_offsets,0,5\n",
    "LOG_DIRS": '{"brokers":[{"broker":1,"logDirs":[{"logDir":"/d","partitions":[]}]}]}',
    "LOG_DIRS_TWICE": '{"brokers":[{"broker":1,"logDirs":[{"logDir":"/d","partitions":[]},'
    '{"logDir":"/d","partitions":[]}]}]}',
    "PLAN_SAME": '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}',
    "S_CUT": _SCENARIO[:-4],
    "S_TWICE": _SCENARIO.replace("name: x", "name: x\nname: y"),
    "S_UNKNOWN": _SCENARIO.replace("brokers:", "broker:"),
    "S_STEP": _SCENARIO.replace("{elect: {}}", "{elect: {}}, {brokers_fail: [1]}"),
    "S_TYPE": _SCENARIO.replace("[1, 2]\n", "[1, two]\n"),
    "S_OCTAL": _SCENARIO.replace("partition: 0", "partition: 010"),
    "S_YES": f"{_SCENARIO}brokers_replicate: yes\n",
    "S_CONFIG": _SCENARIO.replace("name: t,", "name: t, config: {min.insync.replica: 2},"),
    "S_VALUE": _SCENARIO.replace("name: t,", "name: t, config: {min.insync.replicas: zero},"),
    "S_KEY": f"{_SCENARIO}config: {{unclean.leader.election: true}}\n",
    "S_BROKER": _SCENARIO.replace("{elect: {}}", "{elect: {}}, {broker_failure: [9]}"),
    "PROPERTIES": "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GUESS\n",
    "BAD_ESCAPE": "zookeeper.connect=\\u12\n",
    "RACKS": "broker,rack\n1,\n",
    "PARTS": '{"schema":"other/v1","first_seed":1}\n',
    "RUN": '{"schema":"kframe.sim-run/v1"}',
}


def make_files(folder: Path) -> dict[str, str]:
    """Write the files of the table into ``folder``; return their paths by name."""
    for name, text in _TEXTS.items():
        (folder / name).write_text(text)
    (folder / "BINARY").write_bytes(bytes(range(256)) * 8)
    content = HEALTHY.read_bytes()
    (folder / "GZIP_CUT").write_bytes(content[: len(content) // 2])
    (folder / "DUMP_CUT").write_bytes(gzip.decompress(content)[:-20])
    (folder / "FOLDER").mkdir()
    (folder / "FULL").symlink_to("/dev/full")  # A command that replaces the file replaces only this link.
    names = [*_TEXTS, "BINARY", "GZIP_CUT", "DUMP_CUT", "FOLDER", "FULL", "MISSING"]
    paths = {name: str(folder / name) for name in names}
    return paths | {"SNAPSHOT": str(HEALTHY), "PLAN": str(PLAN), "NEW": str(folder / "new"), "READONLY": "/proc/kframe"}


#: Commands that read a snapshot, written S.
_SNAPSHOT_READERS: Final = (
    "explain S t-0",
    "plan generate S --rebalance",
    "plan check S PLAN",
    "plan diff S PLAN",
    "plan show S PLAN",
    "plan disks S --log-dirs LOG_DIRS",
    "plan restarts S",
    "plan stage S PLAN",
    "plan stamp S PLAN",
    "snapshot convert S NEW",
    "snapshot show S",
    "whatif create S x",
    "whatif create-partitions S t --partitions 9",
    "whatif delete S t",
    "whatif elect S --type preferred",
    "whatif fail S --brokers 1",
    "whatif reassign S PLAN",
    "whatif restart S --brokers 1",
    "whatif shutdown S --brokers 1",
    "whatif sweep S",
)
_BAD_SNAPSHOTS: Final = {
    "MISSING": "MISSING: no such file",
    "EMPTY": "EMPTY: found an empty file",
    "NONSENSE": "NONSENSE: found",
    "BINARY": "BINARY: found",
    "GZIP_CUT": "GZIP_CUT: found a damaged gzip file",
    "DUMP_CUT": "DUMP_CUT:1472: found malformed JSON",
    "FOLDER": "FOLDER/manifest.json: no such file",
}
#: Commands that read a plan, written P.
_PLAN_READERS: Final = (
    "plan check P",
    "plan diff SNAPSHOT P",
    "plan show SNAPSHOT P",
    "plan stage SNAPSHOT P",
    "plan stamp SNAPSHOT P",
    "whatif reassign SNAPSHOT P",
    "reassign cancel --plan P ADMIN",
    "plan execute CLUSTER P",
)
#: Commands that read the journal of an execution, written J.
_JOURNAL_READERS: Final = ("plan resume J", "plan rollback J", "plan pause J", "plan abort J", "plan status J")
_BAD_JOURNALS: Final = {
    "MISSING": "No such file",
    "EMPTY": "no first entry",
    "NONSENSE": "NONSENSE:1: found checksum",
    "JOURNAL_VERSION": "found version 9",
    "JOURNAL_CUT": "no first entry",
}
_BAD_PLANS: Final = {
    name: name
    for name in (
        "MISSING",
        "EMPTY",
        "NONSENSE",
        "BINARY",
        "PLAN_CUT",
        "PLAN_TWICE",
        "PLAN_UNKNOWN",
        "PLAN_VERSION",
        "PLAN_TYPE",
        "PLAN_STAMP",
    )
}
#: Commands that read the metadata log of a KRaft cluster, written L.
_LOG_READERS: Final = ("log show L", "log at L", "log diff L 1 2", "log why L t-0")
_BAD_LOGS: Final = {name: name for name in ("MISSING", "EMPTY", "NONSENSE", "BINARY", "FOLDER")}
_SCENARIO_READERS: Final = ("scenario check F -o wide", "scenario run F")
_BAD_SCENARIOS: Final = {
    "MISSING": "No such file",
    "EMPTY": "a mapping",
    "NONSENSE": "a mapping",
    "BINARY": "UTF-8",
    "S_CUT": ":5: ",
    "S_TWICE": ":3: found key name again",
    "S_UNKNOWN": ": broker: found an unknown field",
    "S_STEP": "steps[1]: found unknown step 'brokers_fail'",
    "S_TYPE": "brokers[1]: found 'two'",
    "S_OCTAL": ":4: found 010",
    "S_YES": ":6: found yes",
    "S_CONFIG": "topics[0].config: found Unknown topic config",
    "S_VALUE": "topics[0].config: found Invalid value zero",
    "S_KEY": "unclean.leader.election",
    "S_BROKER": "steps[1].broker_failure: found broker 9",
    "FOLDER": "Is a directory",
}
#: Commands that read the racks of brokers, whose file is R.
_RACK_MAP_READERS: Final = (
    "snapshot convert SNAPSHOT NEW --rack-map R",
    "snapshot show SNAPSHOT --rack-map R",
    "whatif elect SNAPSHOT --type preferred --rack-map R",
    "whatif sweep SNAPSHOT --rack-map R",
    "explain SNAPSHOT __consumer_offsets-0 --rack-map R",
    "plan generate SNAPSHOT --rebalance --rack-map R",
    "plan check SNAPSHOT PLAN --rack-map R",
    "plan stage SNAPSHOT PLAN --max-moves-per-broker 5 --rack-map R",
    "plan show SNAPSHOT PLAN --rack-map R",
    "plan diff SNAPSHOT PLAN --rack-map R",
    "plan stamp SNAPSHOT PLAN --rack-map R",
)
#: Commands for live clusters, written with the address of a server that does not exist.
_OFFLINE: Final = (
    BadInput("elect --type preferred --all DEAD_BROKER", 1, "127.0.0.1:1"),
    BadInput("plan execute kafka://127.0.0.1:1 PLAN", 1, "127.0.0.1:1"),
    BadInput("plan resume JOURNAL", 1, "127.0.0.1:1"),
    BadInput("plan pause JOURNAL", 1, "127.0.0.1:1"),
    BadInput("reassign cancel --all DEAD_BROKER", 1, "127.0.0.1:1"),
    BadInput("reassign cancel --plan PLAN DEAD_BROKER", 1, "127.0.0.1:1"),
    BadInput("reassign list DEAD_BROKER", 1, "127.0.0.1:1"),
    BadInput("reassign start t-0=1,2 DEAD_BROKER", 1, "127.0.0.1:1"),
    BadInput("reassign list --bootstrap-server nosuch.invalid:9092", 1, "nosuch.invalid:9092"),
    BadInput("controller status --zookeeper 127.0.0.1:1 --config FAST", 1, "127.0.0.1"),
    BadInput("controller resign --zookeeper 127.0.0.1:1 --config FAST", 1, "127.0.0.1"),
    BadInput("controller shadow --zookeeper 127.0.0.1:1 --config FAST --for 0", 1, "127.0.0.1"),
    BadInput("controller run --zookeeper 127.0.0.1:1 --config FAST --id 5 --transport recording:", 1, "127.0.0.1"),
    BadInput("snapshot capture zookeeper://127.0.0.1:1 NEW --config FAST", 1, "127.0.0.1"),
)
_SINGLE: Final = (
    BadInput("log show FOLDER --type NoSuchRecord", 2, "NoSuchRecord"),
    BadInput("log at FOLDER --offset 1 --time 2026-01-01", 2, "--offset and --time"),
    BadInput("log diff FOLDER 1 2 --by planet", 2, "planet"),
    BadInput("log why FOLDER t-0 --offset x", 2, "--offset"),
    BadInput("kraft compare FOLDER", 2, "one directory"),
    BadInput("kraft compare MISSING FOLDER", 2, "MISSING"),
    BadInput("kraft compare EMPTY EMPTY", 2, "EMPTY"),
    BadInput("kraft format -t x -c MISSING", 2, "MISSING"),
    BadInput("kraft format -t x -c FOLDER", 2, "FOLDER"),
    BadInput("kraft format -t x -c NONSENSE", 2, "process.roles"),
    BadInput("kraft recover MISSING", 2, "MISSING"),
    BadInput("kraft recover FOLDER", 2, "FOLDER"),
    BadInput("kraft recover EMPTY --out NEW", 2, "EMPTY"),
    BadInput("kraft recover FOLDER --listener nonsense", 2, "nonsense"),
    BadInput("console", 2, "found no SOURCE, expected a snapshot"),
    BadInput("console MISSING", 2, "MISSING"),
    BadInput("console NONSENSE", 2, "NONSENSE"),
    BadInput("console SNAPSHOT --listen nonsense", 2, "--listen: found 'nonsense'"),
    BadInput("console SNAPSHOT --listen 0.0.0.0:1", 2, "--listen: found 0.0.0.0 without a login"),
    BadInput("console SNAPSHOT --users NONSENSE", 2, "NONSENSE"),
    BadInput("console SNAPSHOT --tokens NONSENSE", 2, "NONSENSE"),
    BadInput("console SNAPSHOT --oidc NONSENSE", 2, "NONSENSE"),
    BadInput("console SNAPSHOT --allow-execute", 2, "--allow-execute: found no --audit-log"),
    BadInput("console SNAPSHOT --audit-log FOLDER", 2, "FOLDER"),
    # -- arguments and options
    BadInput("bench nosuch", 2, "'WHAT'"),
    BadInput("bench broker-failure --partitions 0", 2, "--partitions"),
    BadInput("bench broker-failure --brokers 3", 2, "--brokers"),
    BadInput("bench", 2, "'WHAT'"),
    BadInput("completion powershell", 2, "powershell"),
    BadInput("demo --partitions 0", 2, "partitions"),
    BadInput("demo --partitions 100 --brokers 1", 2, "brokers"),
    BadInput("demo MISSING", 2, "MISSING"),
    BadInput("demo NONSENSE", 2, "NONSENSE"),
    BadInput("schema nosuch", 2, "'nosuch'"),
    BadInput("states -o xml", 2, "'-o'"),
    BadInput("nope", 2, "error: No such command 'nope'. (see kframe --help)"),
    BadInput("--nope", 2, "error: No such option"),
    BadInput("snapshot show kafka://h:1", 2, "expected a file; kframe snapshot capture writes one"),
    BadInput("stats", 2, "No such command 'stats'. Did you mean 'states'? (see"),
    BadInput("explain SNAPSHOT __consumer_offsets-99", 2, "-99, expected a partition of topic __"),
    BadInput("explain SNAPSHOT __consumer_offsets", 2, "TOPIC-PARTITION: found "),
    BadInput("explain SNAPSHOT __consumer_offsets-0 --fail 99", 2, "found broker 99"),
    # -- plugins
    BadInput("plugins list --plugins-dir MISSING", 2, "MISSING"),
    BadInput("plugins show nosuch", 2, "'nosuch'"),
    BadInput("plugins check nosuch", 2, "'nosuch'"),
    BadInput("plugins check rack-spread --plugins-dir NONSENSE", 2, "NONSENSE"),
    BadInput("plugins create NEW --name Bad_Name", 2, "Bad_Name"),
    BadInput("plugins create EMPTY --name good", 2, "EMPTY"),
    BadInput("plugins create READONLY --name good", 2, "/proc/kframe"),
    # -- snapshots
    BadInput("snapshot show SNAPSHOT --list brokers --topics t", 2, "--topics and --list brokers"),
    BadInput("snapshot show SNAPSHOT --from describe", 2, "healthy"),
    BadInput("snapshot show SNAPSHOT --from nosuch", 2, "--from"),
    BadInput("snapshot convert SNAPSHOT FOLDER", 2, "FOLDER"),
    BadInput("snapshot convert SNAPSHOT EMPTY", 2, "EMPTY"),
    BadInput("snapshot convert SNAPSHOT MISSING/out", 2, "MISSING"),
    BadInput("snapshot convert SNAPSHOT READONLY", 2, "/proc/kframe"),
    BadInput("snapshot generate NEW --partitions 0 --brokers 0", 2, "partitions"),
    BadInput("snapshot generate NEW --partitions 10 --brokers 3 --unclean 2", 2, "unclean"),
    BadInput("snapshot generate READONLY --partitions 10 --brokers 3", 2, "/proc/kframe"),
    BadInput("snapshot capture nosuch://host NEW", 2, "nosuch"),
    BadInput("snapshot capture zookeeper:// NEW", 2, "zookeeper://"),
    BadInput("snapshot capture zookeeper://a:1 NEW --log-dirs NEW.csv", 2, "kafka://"),
    BadInput("snapshot capture kafka://a:1 NEW --log-dirs NEW.txt", 2, ".parquet or .csv"),
    BadInput("snapshot capture zookeeper://a:1 NEW --config MISSING", 2, "MISSING"),
    BadInput("snapshot capture zookeeper://a:1 NEW --config BAD_ESCAPE", 2, "BAD_ESCAPE:1"),
    # -- what-ifs
    BadInput("whatif fail SNAPSHOT", 2, "--brokers: found no broker, expected at least one of 1, 2, 3, 4, 5, 6"),
    BadInput("whatif fail SNAPSHOT --brokers 2 --mode kraft", 2, "--mode: found kraft"),
    BadInput("whatif fence SNAPSHOT --brokers 2", 2, "mode: found zookeeper"),
    BadInput("whatif unfence SNAPSHOT --brokers 2", 2, "mode: found zookeeper"),
    BadInput("whatif fail-directories SNAPSHOT --broker 2 --directory nosuch", 2, "--directory: found 'nosuch'"),
    BadInput("whatif update-features SNAPSHOT metadata.version=9.9", 2, "metadata.version"),
    BadInput("whatif update-features SNAPSHOT metadata.version", 2, "NAME=LEVEL"),
    BadInput("whatif unregister SNAPSHOT --brokers 2", 2, "mode: found zookeeper"),
    BadInput("whatif unregister KRAFT", 2, "--brokers: found no node, expected at least one broker or controller"),
    BadInput(
        "whatif unregister KRAFT --stale-controllers 7", 2, "--stale-controllers: found node 7, expected registered"
    ),
    BadInput("whatif fail SNAPSHOT --brokers 99", 2, "broker 99, expected a registered broker: 1, 2, 3, 4, 5, 6"),
    BadInput("whatif fail PLAN --brokers 1", 2, "found nothing about who leads"),
    BadInput("whatif fail SNAPSHOT --brokers two", 2, "found 'two', expected broker ids such as 2,5"),
    BadInput("whatif fail SNAPSHOT --brokers 99 --out NEW", 2, "found broker 99"),
    BadInput("whatif fail SNAPSHOT --brokers 4 --no-plugin nosuch", 2, "plugins: found nosuch, expected one of"),
    BadInput("whatif fail SNAPSHOT --racks nosuch", 2, "--racks: found rack 'nosuch', expected one of rack-0, rack-1"),
    BadInput("whatif fail SNAPSHOT --brokers 2 --config x", 2, "--config: found 'x', expected KEY=VALUE"),
    BadInput("whatif fail SNAPSHOT --brokers 2 --config nosuch.key=1", 2, "config: found unknown key 'nosuch.key'"),
    BadInput("whatif fail SNAPSHOT --brokers 2 --config min.insync.replicas=x", 2, "min.insync.replicas: found 'x'"),
    BadInput("whatif fail SNAPSHOT --brokers 2 --config inter.broker.protocol.version=9.9", 2, "protocol.version: "),
    BadInput("whatif fail SNAPSHOT --brokers 2 --selector nosuch", 2, "no leader selector 'nosuch'"),
    BadInput("whatif fail SNAPSHOT --brokers 2 --fail-on everything", 2, "'everything' is not one of"),
    BadInput("whatif fail SNAPSHOT --brokers 2 --limit -1", 2, "Invalid value for '--limit'"),
    BadInput("whatif fail SNAPSHOT --brokers 2 --out FOLDER", 2, "FOLDER"),
    BadInput("whatif fail SNAPSHOT --brokers 2 --out MISSING/out", 2, "MISSING"),
    BadInput("whatif fail SNAPSHOT --brokers 2 --out READONLY", 2, "/proc/kframe"),
    BadInput("whatif fail SNAPSHOT --brokers 2 --out FULL --force", 2, "FULL"),
    BadInput("whatif fail SNAPSHOT --brokers 2,3 --fail-on offline", 3, "offline"),
    BadInput("whatif restart SNAPSHOT --brokers 99", 2, "broker 99, expected a broker of the snapshot: 1, 2, 3"),
    BadInput("whatif elect SNAPSHOT", 2, "Missing option '--type'"),
    BadInput("whatif elect SNAPSHOT --type preferred --partition t", 2, "found 't', expected a partition written"),
    BadInput("whatif reassign SNAPSHOT", 2, "Missing argument 'PLAN'"),
    BadInput("whatif reassign SNAPSHOT PLAN_CUT --out NEW", 2, "malformed JSON"),
    BadInput("whatif create SNAPSHOT", 2, "Missing argument 'TOPIC'"),
    BadInput("whatif create SNAPSHOT x --assignments [[1", 2, "--assignments"),
    BadInput("whatif create SNAPSHOT x --assignments {}", 2, "expected replica lists such as [[1,2],[2,3]]"),
    BadInput("whatif create SNAPSHOT x --assignments [1]", 2, "expected replica lists"),
    BadInput("whatif create SNAPSHOT x --assignments [[-1]]", 2, "expected replica lists"),
    BadInput("whatif create SNAPSHOT x --assignments [[2147483648]]", 2, "expected replica lists"),
    BadInput("whatif create SNAPSHOT x --assignments [[1],[99]] --out NEW", 2, "[1]: found broker 99"),
    BadInput("whatif create-partitions SNAPSHOT __consumer_offsets", 2, "--partitions"),
    BadInput("whatif create-partitions SNAPSHOT x --partitions 9 --assignments [[99]]", 2, "broker 99"),
    BadInput("whatif delete SNAPSHOT", 2, "Missing argument 'TOPIC...'"),
    BadInput("whatif sweep SNAPSHOT --depth 3", 2, "found '3', expected a whole number from 1 to 2"),
    BadInput("whatif sweep SNAPSHOT --plot NEW.pdf", 2, "found a name that ends in '.pdf', expected .svg or .png"),
    BadInput("whatif sweep SNAPSHOT --depth 1 --plot NEW.svg", 2, "--plot: found --depth 1, expected --depth 2"),
    BadInput("whatif sweep SNAPSHOT --out MISSING/all.parquet", 2, "no such directory"),
    BadInput("whatif sweep SNAPSHOT --elr both", 2, "--elr: found a cluster in ZooKeeper mode, expected a KRaft"),
    BadInput("whatif sweep SNAPSHOT --elr both --out NEW", 2, "--out: found --elr both, expected --elr on or off"),
    BadInput("whatif sweep SNAPSHOT --elr both --plot NEW.svg", 2, "--plot: found --elr both, expected --elr on or"),
    BadInput("whatif sweep SNAPSHOT --elr both --fail-on data-loss", 2, "--fail-on: found --elr both, expected --elr"),
    BadInput("whatif sweep SNAPSHOT --out READONLY", 2, "/proc"),
    BadInput("whatif sweep SNAPSHOT --plot /proc/kframe.svg", 2, "/proc/kframe.svg"),
    BadInput("whatif sweep SNAPSHOT --out FULL --force", 2, "FULL"),
    BadInput("whatif sweep SNAPSHOT --sort-by x", 2, "--sort-by"),
    # -- values that contradict one another
    BadInput("plan generate SNAPSHOT --add-brokers 7:", 2, "found '7:' without a rack"),
    BadInput("plan generate SNAPSHOT --rebalance --report -", 2, "found -, expected a path"),
    BadInput("plan generate SNAPSHOT --rebalance --out ''", 2, "--out: found an empty name"),
    BadInput("plan generate SNAPSHOT --rebalance --out NEW --report NEW", 2, "the file of --out, expected another"),
    BadInput("plan generate SNAPSHOT --rebalance --out SNAPSHOT --force", 2, "the file of SNAPSHOT, expected another"),
    BadInput("plan generate SNAPSHOT --rebalance --broker-cap 1==2", 2, "found '1=', expected a broker id"),
    BadInput("plan generate SNAPSHOT --rebalance --capacity 1=1e400", 2, "found '1=1e400', expected ID=NUMBER"),
    BadInput("plan generate SNAPSHOT --rebalance --tolerance 5%", 2, "found '5%', expected a number such as 2.5"),
    BadInput("plan generate SNAPSHOT --replace 1=2=3", 2, "--replace: found '1=2', expected a broker id"),
    BadInput("plan stage SNAPSHOT PLAN --window 22:60-23:00", 2, "window: found '22:60-23:00'"),
    BadInput("plan stage SNAPSHOT PLAN --rate '5 MB/h'", 2, "found '5 MB/h', expected a rate in bytes"),
    BadInput("plan stage SNAPSHOT PLAN --disk-capacity 1=5GB --disk-capacity 1=6GB", 2, "found 1 twice"),
    BadInput("plan check PLAN --controllers 9", 2, "found options of a SNAPSHOT without one"),
    BadInput("plan check PLAN --config kframe.kraft.release=4.2", 2, "found options of a SNAPSHOT without one"),
    BadInput(
        "plan check SNAPSHOT PLAN --config kframe.kraft.release=4.2", 2, "expected no key: checks of plans in ZooKeeper"
    ),
    BadInput("plan check PLAN --rack-map RACKS", 2, "found options of a SNAPSHOT without one"),
    BadInput("plan check PLAN --one-rack t", 2, "found options of a SNAPSHOT without one"),
    BadInput("plan check SNAPSHOT PLAN --one-rack nosuch", 2, "--one-rack: found 'nosuch'"),
    BadInput("plan generate SNAPSHOT --rebalance --selector avoid-brokers", 2, "expected broker ids such as 1,2"),
    BadInput(
        "plan generate SNAPSHOT --rebalance --selector prefer-racks --selector-option prefer-racks.racks=a",
        2,
        "--selector: found a plan that may move replicas",
    ),
    BadInput(
        "plan generate SNAPSHOT --leaders-only --selector controlled-shutdown-0.8.2",
        2,
        "a selector for OFFLINE elections",
    ),
    BadInput("plan generate SNAPSHOT --leaders-only --selector-option a.b=1", 2, "found selector 'a'"),
    BadInput("plan generate SNAPSHOT --one-rack a,", 2, "found 'a,', expected topics such as orders,audit-*"),
    BadInput("whatif sweep SNAPSHOT --plot NEW.svg --out NEW.svg", 2, "the file of --out, expected another"),
    BadInput("whatif sweep SNAPSHOT --plot NEW", 2, "found a name without an ending, expected .svg or .png"),
    BadInput("whatif elect SNAPSHOT --type preferred --partition a-0 --partition a-0", 2, "found a-0 twice"),
    BadInput("snapshot show ''", 2, "found an empty name, expected a file"),
    # -- keys given twice
    BadInput("whatif fail SNAPSHOT --brokers 4 --brokers 3-5", 2, "broker 4 twice"),
    BadInput("plan generate SNAPSHOT --add-brokers 7 --add-brokers 7:a", 2, "broker 7 twice"),
    BadInput("plan generate SNAPSHOT --replace 1=2 --replace 1=3", 2, "1 twice"),
    BadInput("plan generate SNAPSHOT --replace 1=2,01=3", 2, "broker 1 twice"),
    BadInput("plan generate SNAPSHOT --replication-factor a=2 --replication-factor a=3", 2, "a twice"),
    BadInput("plan generate SNAPSHOT --rebalance --broker-cap 4 --broker-cap 5", 2, "a value for all twice"),
    BadInput("plan generate SNAPSHOT --rebalance --broker-cap 1-3=4,2=5", 2, "broker 2 twice"),
    BadInput("plan generate SNAPSHOT --rebalance --capacity 1=4,1=5", 2, "1 twice"),
    BadInput("spark validate FOLDER --conf a=1 --conf a=2", 2, "a twice"),
    BadInput("reassign start t-0=3,4 t-0=1,2 ADMIN", 2, "TOPIC-PARTITION=ID,ID...: found t-0 twice, expected each"),
    BadInput("reassign start t=3 ADMIN", 2, "TOPIC-PARTITION=ID,ID...: found 't', expected a partition written"),
    BadInput("reassign start t-0=x ADMIN", 2, "'t-0=x': expected TOPIC-PARTITION=ID,ID..."),
    BadInput("reassign cancel t-0 t-0 ADMIN", 2, "TOPIC-PARTITION: found t-0 twice, expected each partition once"),
    # -- numbers in other texts
    BadInput("explain SNAPSHOT __consumer_offsets-\uff11", 2, "TOPIC-PARTITION"),
    BadInput("whatif elect SNAPSHOT --type preferred --partition __consumer_offsets-1_0", 2, "--partition"),
    BadInput("whatif update-features KRAFT metadata.version=\uff11", 2, "level of metadata.version"),
    BadInput("reassign start t-0=\uff11,2 DEAD_BROKER", 2, "t-0"),
    BadInput("elect --type preferred --all --bootstrap-server a:\uff11", 2, "bootstrap servers"),
    BadInput("sim run --seeds \uff11..2", 2, "--seeds"),
    BadInput("sim replay \uff11", 2, "\uff11"),
    BadInput(f"sim replay {'9' * 5000}", 2, "9999"),
    BadInput("controller run --zookeeper a:1 --id \uff11", 2, "--id"),
    BadInput("controller run --zookeeper a:\uff11 --id 5", 2, "zookeeper.connect"),
    BadInput(
        "controller run --zookeeper a:1 --id 5 --transport recording: --metrics-listen \uff11", 2, "metrics-listen"
    ),
    BadInput("plan stage SNAPSHOT PLAN --window \uff110:00-11:00", 2, "window"),
    BadInput("plan stage SNAPSHOT PLAN --disk-capacity 1-3=5XB", 2, "a size in bytes such as 500GB"),
    BadInput("snapshot generate NEW --partitions 99999999999 --brokers 3", 2, "--partitions"),
    BadInput("whatif fail SNAPSHOT --brokers 1-999999", 2, "at most 100000"),
    BadInput("plan generate SNAPSHOT --rebalance --broker-cap 0-2147483647=3", 2, "--broker-cap"),
    # -- patterns
    BadInput("whatif delete SNAPSHOT nosuch*", 2, "expected the name of a topic"),
    BadInput("snapshot show SNAPSHOT --topics a,,b", 2, "expected topics such as orders,audit-*"),
    # -- requests that Kafka refuses
    BadInput("whatif create SNAPSHOT a/b", 1, "INVALID_TOPIC_EXCEPTION"),
    BadInput("whatif create SNAPSHOT x --partitions 0", 1, "INVALID_PARTITIONS"),
    BadInput("whatif create SNAPSHOT x --assignments [[1,1]]", 1, "INVALID_REPLICA_ASSIGNMENT"),
    BadInput("whatif create-partitions SNAPSHOT nosuch --partitions 9", 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    BadInput("whatif create-partitions SNAPSHOT __consumer_offsets --partitions 1", 1, "INVALID_PARTITIONS"),
    BadInput("whatif create-partitions SNAPSHOT __consumer_offsets --partitions 2000000000", 1, "exceeds 4,194,304"),
    BadInput("whatif elect SNAPSHOT --type preferred --partition nosuch-0", 2, "nosuch-0, expected a partition of the"),
    # -- plans
    BadInput("plan check PLAN_SAME", 1, "duplicate-broker"),
    BadInput("plan check SNAPSHOT PLAN_LOST", 1, "unknown-topic"),
    BadInput("plan generate SNAPSHOT", 2, "no goal"),
    BadInput("plan generate SNAPSHOT --add-brokers 1", 2, "broker 1, which is in the cluster with"),
    BadInput("plan generate SNAPSHOT --replace 1=2 --exclude-brokers 2", 2, "broker 2, which is excluded"),
    BadInput("plan generate SNAPSHOT --add-brokers 9:rack-0 --evacuate-rack rack-0", 2, "is evacuated"),
    BadInput("plan generate SNAPSHOT --add-brokers a:b", 2, "'a:b'"),
    BadInput("plan generate SNAPSHOT --remove-brokers 1 --add-brokers 1", 2, "broker 1"),
    BadInput("plan generate SNAPSHOT --replace 1", 2, "''"),
    BadInput("plan generate SNAPSHOT --replication-factor nosuch=2", 2, "'nosuch'"),
    BadInput("plan generate SNAPSHOT --replication-factor 2", 2, "TOPIC=N"),
    BadInput("plan generate SNAPSHOT --rebalance --topics nosuch*", 2, "'nosuch*'"),
    BadInput("plan generate SNAPSHOT --rebalance --weights NONSENSE", 2, "NONSENSE:1"),
    BadInput("plan generate SNAPSHOT --rebalance --weights SIZES", 2, "SIZES:2"),
    BadInput("plan generate SNAPSHOT --rebalance --weights SIZES_FEW", 2, "no bytes of"),
    BadInput("plan generate SNAPSHOT --rebalance --weights MISSING", 2, "MISSING"),
    BadInput("plan generate SNAPSHOT --rebalance --out FOLDER", 2, "FOLDER"),
    BadInput("plan generate zookeeper://a --rebalance --from kcat EMBEDDED", 2, "found a URL, expected a file"),
    BadInput("plan generate SNAPSHOT --rebalance --command-config MISSING EMBEDDED", 2, "expected the URL of a live"),
    BadInput("plan generate zookeeper://a --rebalance --command-config MISSING EMBEDDED", 2, "others take --config"),
    BadInput("plan generate nothing://a --rebalance EMBEDDED", 2, "nothing"),
    BadInput("plan disks SNAPSHOT", 2, "--log-dirs: found none"),
    BadInput("plan disks SNAPSHOT --log-dirs MISSING", 2, "MISSING"),
    BadInput("plan disks SNAPSHOT --log-dirs NONSENSE", 2, "NONSENSE: found no log directories"),
    BadInput("plan disks SNAPSHOT --log-dirs LOG_DIRS_TWICE", 2, "found '/d' again"),
    BadInput("plan disks SNAPSHOT --log-dirs LOG_DIRS --relieve 1:/d", 2, "--until: found no level"),
    BadInput("plan disks SNAPSHOT --log-dirs LOG_DIRS --exclude 9:/d", 2, "--exclude: found broker 9"),
    BadInput("plan restarts SNAPSHOT --brokers 9", 2, "--brokers: found broker 9"),
    BadInput("plan restarts SNAPSHOT --whole-racks --max-batch 2", 2, "--max-batch: found whole racks"),
    BadInput("plan restarts SNAPSHOT --watch nowhere", 2, "expected that of a live cluster"),
    BadInput("plan restarts SNAPSHOT --batch 2", 2, "--batch: found no --watch"),
    BadInput("plan stage SNAPSHOT PLAN_LOST", 1, "invalid"),
    BadInput("plan stage SNAPSHOT PLAN --max-moves 0", 2, "--max-moves"),
    BadInput("plan stage SNAPSHOT PLAN --disk-capacity 1=5", 2, "--disk-capacity: "),
    BadInput("plan stage SNAPSHOT PLAN --rate 5", 2, "--rate: "),
    BadInput("plan stage SNAPSHOT PLAN --window 22:00-06:00", 2, "--window: "),
    BadInput("plan stage SNAPSHOT PLAN --window 22:00", 2, "'22:00'"),
    BadInput("plan stage SNAPSHOT PLAN --weights SIZES_FEW", 2, "no bytes of"),
    BadInput("plan stage SNAPSHOT PLAN --out READONLY", 2, "/proc/kframe"),
    BadInput("plan stage SNAPSHOT PLAN --out EMPTY", 2, "EMPTY"),
    BadInput("plan check -", 2, "standard input"),
    BadInput("plan check", 2, "Missing argument '[SNAPSHOT] PLAN'"),
    BadInput("plan check PLAN --from tape", 2, "'tape' is not one of"),
    BadInput("plan check PLAN --report NEW", 2, "--report: found no SNAPSHOT, expected one before PLAN"),
    BadInput("plan check PLAN --weights SIZES_FEW", 2, "--weights: found no SNAPSHOT, expected one before PLAN"),
    BadInput("plan check PLAN --rate 5MB/s", 2, "--rate: found no SNAPSHOT, expected one before PLAN"),
    BadInput("plan check SNAPSHOT PLAN --rate 5MB/s", 2, "--rate: found no sizes of partitions, expected weights"),
    BadInput("plan show PLAN", 2, "Missing argument 'PLAN'"),
    BadInput("plan show - -", 2, "- twice"),
    BadInput("plan check SNAPSHOT PLAN PLAN", 2, "found 3 files, expected [SNAPSHOT] PLAN"),
    BadInput("elect --all ADMIN", 2, "--type"),
    BadInput("plan execute CLUSTER PLAN_LOST", 1, "nosuch-0"),
    BadInput("plan execute nonsense PLAN", 2, "nonsense"),
    BadInput("plan execute CLUSTER PLAN --throttle 0", 2, "--throttle"),
    BadInput("plan execute CLUSTER PLAN --command-config MISSING", 2, "MISSING"),
    BadInput("plan execute CLUSTER PLAN --journal JOURNAL", 2, "the journal of another plan"),
    BadInput("plan execute CLUSTER FOLDER", 2, "manifest.json"),
    BadInput("plan resume JOURNAL --url CLUSTER", 2, "that of the journal"),
    BadInput("plan execute CLUSTER MOVE --execute --journal READONLY", 2, "/proc/kframe"),
    BadInput("plan execute CLUSTER MOVE --execute --journal EMPTY", 2, "EMPTY"),
    BadInput("reassign cancel --plan PLAN --bootstrap-server host:x", 2, "'host:x'"),
    BadInput("reassign start nosuch-0=1,2 ADMIN", 1, "nosuch-0"),
    BadInput("reassign start t-0=98,99 ADMIN", 1, "t-0"),
    BadInput("reassign start t-0=3,4 --bootstrap-server nonsense", 2, "'nonsense'"),
    BadInput("reassign start t-0=3,4", 2, "--bootstrap-server"),
    BadInput("reassign list --bootstrap-server 127.0.0.1:1 --command-config PROPERTIES", 2, "sasl.mechanism"),
    BadInput("reassign cancel ADMIN", 2, "give partitions, --plan or --all"),
    BadInput("reassign cancel t-0 --all ADMIN", 2, "give partitions, --plan or --all"),
    BadInput("elect --type preferred ADMIN", 2, "--all"),
    BadInput("elect --type preferred --partition t ADMIN", 2, "--partition"),
    BadInput("elect --type preferred --partition nosuch-0 --execute ADMIN", 1, "UNKNOWN_TOPIC_OR_PARTITION"),
    # -- controllers
    BadInput("controller run", 2, "--id"),
    BadInput("controller run --zookeeper a:1 --id x", 2, "--id"),
    BadInput("controller run --config MISSING", 2, "MISSING"),
    BadInput("controller run --config BAD_ESCAPE", 2, "BAD_ESCAPE:1"),
    BadInput("controller run --zookeeper a:1 --id 5 --transport nosuch:", 2, "nosuch"),
    BadInput("controller run --zookeeper a:1 --id 5 --log-level LOUD", 2, "--log-level"),
    BadInput("controller run --zookeeper a:1 --id 5 --transport recording: --metrics-listen x", 2, "--metrics-listen"),
    BadInput("controller run --zookeeper a:1 --id 5 --selector no-such-selector", 2, "no-such-selector"),
    BadInput("controller status", 2, "--zookeeper"),
    BadInput("controller status --zookeeper a:b", 2, "a:b"),
    BadInput("controller shadow --zookeeper a:1 --settle 0", 2, "--settle"),
    BadInput("controller shadow kraft://nowhere", 2, "HOST:PORT"),
    BadInput("controller shadow kraft://a:1 --settle 2", 2, "--settle"),
    BadInput("controller shadow kraft://a:1 --zookeeper a:1", 2, "--zookeeper"),
    BadInput("controller shadow --zookeeper a:1 --from-start", 2, "--from-start"),
    BadInput("controller shadow kafka://a:1", 2, "kraft://"),
    BadInput("controller shadow --config FOLDER", 2, "FOLDER"),
    # -- scenarios and simulations
    BadInput("scenario run SCENARIO --selector nosuch", 2, "nosuch"),
    BadInput("scenario run SCENARIO --trace READONLY", 2, "/proc/kframe"),
    BadInput("scenario run SCENARIO --trace MISSING/out", 2, "No such file or directory"),
    BadInput("scenario run S_BROKER --trace NEW", 2, "steps[1].broker_failure: found broker 9"),
    BadInput("scenario run SCENARIO --trace FOLDER", 2, "FOLDER"),
    BadInput("scenario run SCENARIO --trace FULL", 2, "FULL: found No space left on device"),
    BadInput("scenario check", 2, "FILE"),
    BadInput("sim run --seeds 9..1", 2, "--seeds"),
    BadInput("sim run --seeds x", 2, "--seeds"),
    BadInput("sim run --seeds 1 --jobs 0", 2, "--jobs"),
    BadInput("sim run --seeds 1 --append PARTS", 2, "PARTS"),
    BadInput("sim run --seeds 1 --append READONLY", 1, "/proc/kframe"),
    BadInput("sim run --seeds 1 --append FOLDER", 2, "FOLDER"),
    BadInput("sim total MISSING", 2, "MISSING"),
    BadInput("sim total NONSENSE", 2, "NONSENSE"),
    BadInput("sim total BINARY", 2, "BINARY"),
    BadInput("sim total PARTS", 2, "PARTS"),
    BadInput("sim replay MISSING", 2, "MISSING"),
    BadInput("sim replay RUN", 2, "RUN"),
    BadInput("sim replay BINARY", 2, "BINARY"),
    BadInput("sim replay 1 --write READONLY", 1, "/proc/kframe"),
    BadInput("sim replay 1 --scenario READONLY", 1, "/proc/kframe"),
    BadInput("sim replay 1 --write FULL", 1, "FULL: No space left on device"),
    BadInput("sim shrink NONSENSE", 2, "NONSENSE"),
    BadInput("sim shrink 1", 2, "no invariant"),
    BadInput("sim shrink 1 --tries 0", 2, "--tries"),
    # -- fleets
    *(
        BadInput(f"spark {verb} --master nonsense", 2, "--master: found 'nonsense'")
        for verb in (
            "failover FOLDER --brokers 1",
            "ingest SNAPSHOT --out NEW",
            "requests FOLDER --brokers 1",
            "sweep FOLDER",
            "validate FOLDER",
        )
    ),
    BadInput("spark ingest MISSING --out NEW", 2, "MISSING"),
    BadInput("spark ingest SNAPSHOT", 2, "--out"),
    BadInput("spark ingest SNAPSHOT --out EMPTY", 2, "EMPTY"),
    BadInput("spark failover FOLDER --master local --remote sc://x", 2, "--master and --remote"),
    BadInput("spark requests FOLDER --conf x", 2, "--conf"),
    BadInput("spark plan FOLDER --weights NEW", 2, "--weights"),
    BadInput("spark plan FOLDER --goal absent", 2, "absent"),
    BadInput("spark sweep FOLDER --depth 9", 2, "--depth"),
    BadInput("spark report FOLDER --plot NEW.pdf", 2, ".pdf"),
    BadInput("spark report FOLDER --by moon", 2, "--by"),
    BadInput("spark validate FOLDER --fail-on x", 2, "--fail-on"),
)


#: The commands that read a file, how they write it, and the text of the error for each bad file.
_READERS: Final = (
    (_SNAPSHOT_READERS, "S", _BAD_SNAPSHOTS),
    (_PLAN_READERS, "P", _BAD_PLANS),
    (_LOG_READERS, "L", _BAD_LOGS),
    (_SCENARIO_READERS, "F", _BAD_SCENARIOS),
    (_JOURNAL_READERS, "J", _BAD_JOURNALS),
    (_RACK_MAP_READERS, "R", {"RACKS": "RACKS:2"}),
)


def table() -> Iterator[BadInput]:
    """Every row."""
    for readers, placeholder, files in _READERS:
        for reader in readers:
            for name, message in files.items():
                words = (name if word == placeholder else word for word in reader.split())
                yield BadInput(" ".join(words), 2, message)
    yield from _OFFLINE
    yield from _SINGLE
