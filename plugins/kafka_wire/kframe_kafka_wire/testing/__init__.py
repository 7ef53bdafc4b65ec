"""What tests of the plugin need: brokers that a script directs."""
