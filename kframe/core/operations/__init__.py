"""Operations: what the controller does at each event of brokers, administrators, storage and timers."""
