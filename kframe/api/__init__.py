"""What a program that embeds a controller holds in its hands; ``kframe`` itself gives all of it by name."""
