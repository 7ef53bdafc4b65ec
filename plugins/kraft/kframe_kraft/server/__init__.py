"""The KRaft controller behind the sockets of a server: which APIs it offers, and who answers them."""
