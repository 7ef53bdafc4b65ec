"""Kill ``kframe controller run`` of a KRaft quorum, again and again, and check its log against what it acknowledged."""
