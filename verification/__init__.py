"""What verifies kframe and is part of no distribution: tools that are run by hand, outside of CI."""
