"""kframe's command line for ``spark-submit``, which gives it the cluster that its own options name.

spark-submit --master spark://host:7077 examples/spark/submit.py spark ingest /exports --out /fleet
"""

from kframe.cli.app import main

if __name__ == "__main__":
    main()
