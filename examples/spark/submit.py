"""kframe's command line for ``spark-submit``, whose options select the Spark cluster.

spark-submit --master spark://host:7077 examples/spark/submit.py spark ingest /exports --out /fleet
"""

from kframe.cli.app import main

if __name__ == "__main__":
    main()
