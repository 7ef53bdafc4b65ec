"""What commands do with a running cluster, without a controller: capture, status, audit of ACLs, and resignation."""
