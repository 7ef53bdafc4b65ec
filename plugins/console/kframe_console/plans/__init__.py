"""Plans of this session: how they are requested, generated, compared, put in stages and executed."""
