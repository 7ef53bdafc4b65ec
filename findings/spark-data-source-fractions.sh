#!/usr/bin/env bash
# PySpark 4.3.0 with PyArrow 26.0.1: rows of a Python data source lose fractions in another way than createDataFrame.
#
# A reader that yields 1.7 for a column of type int gives 1, without an error or a warning; createDataFrame refuses it.
# For decimal(4,1) both round Decimal("1.25"): the data source to even, createDataFrame away from zero. Other values that
# do not fit fail in both: "12", True and 2**40 for int. A test of a reader's rows with createDataFrame thus does not show
# what its data source returns.
#
# Seen: 1.7: 1 and an error. Decimal("1.25"): 1.2 and 1.3. The others: an error in both.
source "$(dirname "$0")/common/setup.sh"
python_packages pyspark==4.3.0 pyarrow==26.0.1 pandas==2.3.3
cat >"$folder/rows.py" <<'EOF'
from decimal import Decimal

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader


class Reader(DataSourceReader):
    def __init__(self, values):
        self.values = values

    def read(self, partition):
        yield (self.values,)


def result(rows):
    try:
        return repr(rows().collect()[0][0])
    except Exception:
        return "error"


spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
cases = [("int", 1.7), ("decimal(4,1)", Decimal("1.25")), ("int", "12"), ("int", True), ("int", 2**40)]
for number, (column, value) in enumerate(cases):

    class Source(DataSource):
        @classmethod
        def name(cls):
            return f"source{number}"

        def schema(self):
            return f"value {column}"

        def reader(self, schema):
            return Reader(value)

    spark.dataSource.register(Source)
    source = result(lambda: spark.read.format(f"source{number}").load())
    frame = result(lambda: spark.createDataFrame([(value,)], f"value {column}"))
    print(repr(value), source, frame)
EOF
results=$(python "$folder/rows.py" 2>"$folder/spark.log") || { tail -n 20 "$folder/spark.log" >&2; exit 1; }
check "value, from the data source, from createDataFrame" "1.7 1 error
Decimal('1.25') Decimal('1.2') Decimal('1.3')
'12' error error
True error error
1099511627776 error error" "$results"
